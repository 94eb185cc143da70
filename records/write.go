package records

import (
	"time"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Write gathers changes that reach the store together. Messages are encoded when they are handed in, so the caller may
// change them afterwards. The zero value is an empty write; a Write is used by one goroutine and committed once.
type Write struct {
	ops       []Op
	committed []func()
	confirms  bool
}

// Ops are the changes, in the order in which they are to be made.
func (w *Write) Ops() []Op { return w.ops }

// Confirm has the write stored only if the process still has the store, also when it changes nothing: what somebody is
// told then is so.
func (w *Write) Confirm() { w.confirms = true }

// Confirms says whether it is to be.
func (w *Write) Confirms() bool { return w.confirms }

// OnCommitted has f called once the write is stored, before its waiters are told. f must not block, nor call the
// store.
func (w *Write) OnCommitted(f func()) { w.committed = append(w.committed, f) }

// Committed calls what waits for the write to be stored. The store calls it, once.
func (w *Write) Committed() {
	for _, call := range w.committed {
		call()
	}
}

func (w *Write) add(op Op) { w.ops = append(w.ops, op) }

// PutJob stores a job's row; a job whose state is not final stays among the open ones.
func (w *Write) PutJob(row *storev1.JobRow) {
	w.add(PutJob{ID: row.GetJob().GetId(), Row: Encode(row), Final: Final(row.GetJob().GetState())})
}

// PutNew stores what is stored once of a job, the workloads of its tasks, and the request that made it; see
// RequestKey.
func (w *Write) PutNew(jobID string, request []byte, j *NewJob) {
	w.add(PutNew{ID: jobID, Request: request, NewJob: j})
}

// PutProgress stores the progress of one task of a job.
func (w *Write) PutProgress(jobID string, task uint32, p *tilthv1.TaskProgress) {
	w.add(PutProgress{JobID: jobID, Task: task, Row: Encode(p)})
}

// AppendEvent stores an event that is not a trial, and returns how much it takes.
func (w *Write) AppendEvent(jobID string, event *tilthv1.JobEvent) (sizeBytes int64) {
	row := Encode(&storev1.EventRow{Event: event})
	w.add(AppendEvent{JobID: jobID, Sequence: event.GetSequence(), Row: row})
	return int64(len(row))
}

// AppendTrials stores trials of one batch, of a job's task, that were recorded together: their records, and the events
// that report them, in one row. The sequences of the events, of which there is at least one, follow each other. Their
// measurements are the records'. None of it may be changed afterwards.
func (w *Write) AppendTrials(jobID, target, workloadDigest string, events []*tilthv1.JobEvent) {
	first, last := events[0], events[len(events)-1]
	op := AppendTrials{
		JobID: jobID, Sequence: last.GetSequence(), Group: Group{target, workloadDigest}, Records: make([]Entry, len(events)),
		Row: &storev1.EventRow{
			Event: &tilthv1.JobEvent{Sequence: first.GetSequence(), At: first.GetAt(), Event: &tilthv1.JobEvent_Trial{Trial: &tilthv1.TrialRecorded{
				TaskIndex: first.GetTrial().GetTaskIndex(), BatchId: first.GetTrial().GetBatchId(),
			}}},
			Trials: make([]*storev1.TrialRow, len(events)),
		},
	}
	for i, e := range events {
		op.Records[i] = newEntry(jobID, e.GetTrial().GetMeasurement())
		op.Row.Trials[i] = &storev1.TrialRow{BestSeconds: e.GetTrial().GetBestSeconds(), PredictedSeconds: e.GetTrial().GetPredictedSeconds()}
	}
	w.add(op)
}

// EndJob notes of a job that has ended what keeping it, or no longer, needs.
func (w *Write) EndJob(id string, row *storev1.EndedRow) { w.add(EndJob{ID: id, Row: Encode(row)}) }

// DropJob removes a job that has ended, but for its events and other rows of which it may have many: those go with
// Sweep. Its records stay.
func (w *Write) DropJob(id string) { w.add(DropJob{ID: id}) }

// PutBatch stores a batch under way.
func (w *Write) PutBatch(batchID string, row *storev1.BatchRow) {
	w.add(PutBatch{ID: batchID, Row: Encode(row)})
}

// CloseBatch moves a batch to the closed ones, of which only the given row is kept.
func (w *Write) CloseBatch(batchID string, row *storev1.BatchRow) {
	w.add(CloseBatch{ID: batchID, Row: Encode(row)})
}

// ReopenBatch takes a batch from the closed ones; PutBatch puts it among those under way.
func (w *Write) ReopenBatch(batchID string) { w.add(ReopenBatch{ID: batchID}) }

// DropBatch removes a batch that ended with its job.
func (w *Write) DropBatch(batchID string) { w.add(DropBatch{ID: batchID}) }

// DropClosed removes the rows of closed batches from an id on to before another.
func (w *Write) DropClosed(first, beyond string) { w.add(DropClosed{First: first, Beyond: beyond}) }

// PutAgent stores an agent and its session.
func (w *Write) PutAgent(agent *tilthv1.Agent) {
	w.add(PutAgent{Name: agent.GetSpec().GetName(), Row: Encode(agent)})
}

// DropAgent removes an agent.
func (w *Write) DropAgent(name string) { w.add(DropAgent{Name: name}) }

// PutDevice stores what was decided of a device.
func (w *Write) PutDevice(name string, row *storev1.DeviceRow) {
	w.add(PutDevice{Name: name, Row: Encode(row)})
}

// DropDevice removes what was decided of a device.
func (w *Write) DropDevice(name string) { w.add(DropDevice{Name: name}) }

// AddRecord stores a record unless it is already there. It is taken as valid (see Validate), and must not be changed
// afterwards.
func (w *Write) AddRecord(r *tilthv1.Record) { w.add(NewAddRecord(r)) }

// SuspectBests marks the best records that a device measured after a time: they stay the best until their candidates
// are measured again, however shortly.
func (w *Write) SuspectBests(device string, since time.Time, reason string) {
	w.add(SuspectBests{Device: device, Since: since, Reason: reason})
}

// Final says whether a job in this state has ended.
func Final(s tilthv1.JobState) bool {
	switch s {
	case tilthv1.JobState_JOB_STATE_DONE, tilthv1.JobState_JOB_STATE_FAILED, tilthv1.JobState_JOB_STATE_CANCELLED:
		return true
	}
	return false
}
