package records

import (
	"time"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Write collects changes that are stored atomically. Messages are encoded when they are added, so the caller may
// modify them afterwards unless noted. The zero value is empty. A Write is for one goroutine and must be committed
// once.
type Write struct {
	ops       []Op
	committed []func()
	// Confirms makes the write succeed only if the process still owns the store, even if it changes nothing.
	Confirms bool
}

// Ops returns the changes in order.
func (w *Write) Ops() []Op { return w.ops }

// OnCommitted calls f once the write is stored, before Wait returns. f must not block or call the store.
func (w *Write) OnCommitted(f func()) { w.committed = append(w.committed, f) }

// Committed runs the functions of OnCommitted. The store must call it exactly once.
func (w *Write) Committed() {
	for _, call := range w.committed {
		call()
	}
}

func (w *Write) add(op Op) { w.ops = append(w.ops, op) }

func (w *Write) put(kind RowKind, key string, row proto.Message) {
	w.add(PutRow{Kind: kind, Key: key, Row: Encode(row)})
}

func (w *Write) drop(kind RowKind, key string) { w.add(DropRow{Kind: kind, Key: key}) }

// PutJob stores a job's row. A job whose state is not final stays open.
func (w *Write) PutJob(row *storev1.JobRow) {
	w.add(PutJob{ID: row.GetJob().GetId(), Row: Encode(row), Final: Final(row.GetJob().GetState())})
}

// PutNew stores the immutable data of a job, the workloads of its tasks, and the request that created it (see
// RequestKey).
func (w *Write) PutNew(jobID string, request []byte, j *NewJob) {
	w.add(PutNew{ID: jobID, Request: request, NewJob: j})
}

// PutProgress stores the progress of one task of a job.
func (w *Write) PutProgress(jobID string, task uint32, p *tilthv1.TaskProgress) {
	w.add(PutProgress{JobID: jobID, Task: task, Row: Encode(p)})
}

// AppendEvent stores an event that is not a trial, and returns its stored size.
func (w *Write) AppendEvent(jobID string, event *tilthv1.JobEvent) (sizeBytes int64) {
	row := Encode(&storev1.EventRow{Event: event})
	w.add(AppendEvent{JobID: jobID, Sequence: event.GetSequence(), Row: row})
	return int64(len(row))
}

// AppendTrials stores trials of one batch of a task that were recorded together: their records and, in one row, their
// events. There must be at least one event, with consecutive sequences. Nothing passed in may be modified afterwards.
func (w *Write) AppendTrials(jobID, target string, task *tilthv1.TaskSpec, events []*tilthv1.JobEvent) {
	first, last := events[0], events[len(events)-1]
	op := AppendTrials{
		JobID: jobID, Sequence: last.GetSequence(), Group: Group{target, task.GetWorkloadDigest()}, Records: make([]Entry, len(events)),
		Row: &storev1.EventRow{
			Event: &tilthv1.JobEvent{Sequence: first.GetSequence(), At: first.GetAt(), Event: &tilthv1.JobEvent_Trial{Trial: &tilthv1.TrialRecorded{
				TaskIndex: first.GetTrial().GetTaskIndex(), BatchId: first.GetTrial().GetBatchId(),
			}}},
			Trials: make([]*storev1.TrialRow, len(events)),
		},
	}
	for i, e := range events {
		op.Records[i] = newEntry(jobID, task.GetName(), e.GetTrial().GetMeasurement())
		op.Row.Trials[i] = &storev1.TrialRow{BestSeconds: e.GetTrial().GetBestSeconds(), PredictedSeconds: e.GetTrial().GetPredictedSeconds()}
	}
	w.add(op)
}

// EndJob stores what retention needs to know about an ended job.
func (w *Write) EndJob(id string, row *storev1.EndedRow) { w.put(RowEnded, id, row) }

// DropJob removes an ended job, except for its events and other numerous rows, which Sweep removes. Its records stay.
func (w *Write) DropJob(id string) { w.add(DropJob{ID: id}) }

// PutBatch stores an open batch.
func (w *Write) PutBatch(batchID string, row *storev1.BatchRow) {
	w.put(RowBatch, batchID, row)
}

// CloseBatch moves a batch to the closed ones. Only the given row is kept.
func (w *Write) CloseBatch(batchID string, row *storev1.BatchRow) {
	w.drop(RowBatch, batchID)
	w.put(RowClosed, batchID, row)
}

// ReopenBatch removes a batch from the closed ones. PutBatch makes it open again.
func (w *Write) ReopenBatch(batchID string) { w.drop(RowClosed, batchID) }

// DropBatch removes a batch that ended with its job.
func (w *Write) DropBatch(batchID string) { w.drop(RowBatch, batchID) }

// DropClosed removes the rows of closed batches with first <= id < beyond.
func (w *Write) DropClosed(first, beyond string) { w.add(DropClosed{First: first, Beyond: beyond}) }

// PutAgent stores an agent and its session.
func (w *Write) PutAgent(agent *tilthv1.Agent) {
	w.put(RowAgent, agent.GetSpec().GetName(), agent)
}

// DropAgent removes an agent.
func (w *Write) DropAgent(name string) { w.drop(RowAgent, name) }

// PutDevice stores the decisions about a device.
func (w *Write) PutDevice(name string, row *storev1.DeviceRow) {
	w.put(RowDevice, name, row)
}

// DropDevice removes the decisions about a device.
func (w *Write) DropDevice(name string) { w.drop(RowDevice, name) }

// AddRecord stores a record unless it already exists. The record must be valid (see Validate) and must not be modified
// afterwards.
func (w *Write) AddRecord(r *tilthv1.Record) { w.add(NewAddRecord(r)) }

// SuspectBests marks the best records that a device measured after since. They stay the best until their candidates
// are measured again, however briefly.
func (w *Write) SuspectBests(device string, since time.Time, reason string) {
	w.add(SuspectBests{Device: device, Since: since, Reason: reason})
}

// Final reports whether a job in this state has ended.
func Final(s tilthv1.JobState) bool {
	switch s {
	case tilthv1.JobState_JOB_STATE_DONE, tilthv1.JobState_JOB_STATE_FAILED, tilthv1.JobState_JOB_STATE_CANCELLED:
		return true
	}
	return false
}

// NewJob holds the encoded immutable data of a job. Encoding is slow, so it is done outside the tracker's lock.
type NewJob struct {
	Spec     []byte   // a tilthv1.JobSpec
	Progress [][]byte // a tilthv1.TaskProgress per task
	Tasks    []*tilthv1.TaskSpec
}

// EncodeJob encodes a job's specification, which must not be modified afterwards, and the progress of its tasks.
func EncodeJob(spec *tilthv1.JobSpec, progress []*tilthv1.TaskProgress) *NewJob {
	j := &NewJob{Spec: Encode(spec), Progress: make([][]byte, len(progress)), Tasks: spec.GetTasks()}
	for i, p := range progress {
		j.Progress[i] = Encode(p)
	}
	return j
}

// SpecBytes returns the size of the encoded specification.
func (j *NewJob) SpecBytes() int64 { return int64(len(j.Spec)) }

// Op is one change of a store, by value: one of the types below. Except for PutRow and DropRow, the method of Write
// with the same name describes it. Rows are encoded messages. The store owns them, including their spare capacity,
// once the write is committed.
type Op interface{ op() }

type (
	// PutRow has a row of a kind whose rows are independent of all others: RowEnded, RowBatch, RowClosed, RowAgent or
	// RowDevice.
	PutRow struct {
		Kind RowKind
		Key  string
		Row  []byte
	}
	// DropRow removes such a row if it exists.
	DropRow struct {
		Kind RowKind
		Key  string
	}
	// PutJob has a storev1.JobRow. Final is set if the job has ended.
	PutJob struct {
		ID    string
		Row   []byte
		Final bool
	}
	// PutNew has the result of EncodeJob.
	PutNew struct {
		ID      string
		Request []byte
		*NewJob
	}
	// PutProgress has a tilthv1.TaskProgress.
	PutProgress struct {
		JobID string
		Task  uint32
		Row   []byte
	}
	// AppendEvent has a storev1.EventRow.
	AppendEvent struct {
		JobID    string
		Sequence uint64
		Row      []byte
	}
	// AppendTrials has one record for each trial of a row; Sequence is that of the row's last event. The store sets
	// the record keys in the row. A record whose key is taken is stored under another key: see KeyOfTrial.
	AppendTrials struct {
		JobID    string
		Sequence uint64
		Group    Group
		Records  []Entry
		Row      *storev1.EventRow
	}
	// DropJob has no row.
	DropJob struct{ ID string }
	// DropClosed has the half-open range of ids.
	DropClosed struct{ First, Beyond string }
	// AddRecord has a record and its workload's canonical form, which may be empty if unknown.
	AddRecord struct {
		Group    Group
		Workload []byte
		Record   Entry
	}
	// SuspectBests has no row.
	SuspectBests struct {
		Device string
		Since  time.Time
		Reason string
	}
)

func (PutRow) op()       {}
func (DropRow) op()      {}
func (PutJob) op()       {}
func (PutNew) op()       {}
func (PutProgress) op()  {}
func (AppendEvent) op()  {}
func (AppendTrials) op() {}
func (DropJob) op()      {}
func (DropClosed) op()   {}
func (AddRecord) op()    {}
func (SuspectBests) op() {}

// Entry is a record of a group: its key, its measurement, and its row, a tilthv1.Record without the fields that the
// group implies.
type Entry struct {
	Key         Key
	Measurement *tilthv1.Measurement
	Row         []byte
}

func newEntry(jobID, name string, m *tilthv1.Measurement) Entry {
	return Entry{Key: KeyOf(m), Measurement: m, Row: Encode(&tilthv1.Record{Measurement: m, JobId: jobID, Name: Cut(name, MaxNameBytes)})}
}

// NewAddRecord returns the change that adds a record.
func NewAddRecord(r *tilthv1.Record) AddRecord {
	return AddRecord{
		Group: Group{r.GetTarget(), r.GetWorkloadDigest()}, Workload: r.GetWorkload(), Record: newEntry(r.GetJobId(), r.GetName(), r.GetMeasurement()),
	}
}
