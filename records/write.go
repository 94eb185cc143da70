package records

import (
	"bytes"
	"fmt"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Write gathers changes that reach the disk together. Messages are encoded when they are handed in, so the caller may
// change them afterwards. The zero value is an empty write; a Write is used by one goroutine and committed once.
type Write struct {
	ops       []func(*txn) error
	committed []func()
}

// OnCommitted has f called once the write is on disk, before its waiters are told. f must not block.
func (w *Write) OnCommitted(f func()) { w.committed = append(w.committed, f) }

// PutJob stores a job's row; a job whose state is not final stays among the open ones.
func (w *Write) PutJob(row *storev1.JobRow) {
	id := []byte(row.GetJob().GetId())
	w.put(bucketJobs, id, encode(row))
	if Final(row.GetJob().GetState()) {
		w.remove(bucketOpen, id)
		return
	}
	w.ops = append(w.ops, func(tx *txn) error {
		open := tx.table(bucketOpen)
		if open.has(id) {
			return nil // as of all rows of a job but the first: its page stays as it is
		}
		return open.put(id, nil)
	})
}

// PutProgress stores the progress of one task of a job.
func (w *Write) PutProgress(jobID string, task uint32, p *tilthv1.TaskProgress) {
	w.put(bucketProgress, progressKey(jobID, task), encode(p))
}

// AppendEvent stores an event that is not a trial, and returns how much it takes.
func (w *Write) AppendEvent(jobID string, event *tilthv1.JobEvent) (sizeBytes int64) {
	row := encode(&storev1.EventRow{Event: event})
	w.put(bucketEvents, eventKey(jobID, event.GetSequence()), row)
	return int64(len(row))
}

// AppendTrials stores trials of one batch, of a job's task, that were recorded together: their records, and the events
// that report them, in one row. The sequences of the events, of which there is at least one, follow each other. Their
// measurements are the records'. None of it may be changed afterwards.
func (w *Write) AppendTrials(jobID, target, workloadDigest string, events []*tilthv1.JobEvent) {
	first, last := events[0], events[len(events)-1]
	op := trialsOp{
		group: groupKey(target, workloadDigest), place: eventKey(jobID, last.GetSequence()), records: make([]recordOp, len(events)),
		row: &storev1.EventRow{
			Event: &tilthv1.JobEvent{Sequence: first.GetSequence(), At: first.GetAt(), Event: &tilthv1.JobEvent_Trial{Trial: &tilthv1.TrialRecorded{
				TaskIndex: first.GetTrial().GetTaskIndex(), BatchId: first.GetTrial().GetBatchId(),
			}}},
			Trials: make([]*storev1.TrialRow, len(events)),
		},
	}
	for i, e := range events {
		op.records[i] = newRecordOp(jobID, e.GetTrial().GetMeasurement())
		op.row.Trials[i] = &storev1.TrialRow{BestSeconds: e.GetTrial().GetBestSeconds()}
	}
	w.ops = append(w.ops, op.apply)
}

// PutBatch stores a batch under way.
func (w *Write) PutBatch(batchID string, row *storev1.BatchRow) {
	w.put(bucketBatches, []byte(batchID), encode(row))
}

// CloseBatch moves a batch to the closed ones, of which only the given row is kept.
func (w *Write) CloseBatch(batchID string, row *storev1.BatchRow) {
	w.remove(bucketBatches, []byte(batchID))
	w.put(bucketClosed, []byte(batchID), encode(row))
}

// ReopenBatch takes a batch from the closed ones; PutBatch puts it among those under way.
func (w *Write) ReopenBatch(batchID string) { w.remove(bucketClosed, []byte(batchID)) }

// DropBatch removes a batch that ended with its job.
func (w *Write) DropBatch(batchID string) { w.remove(bucketBatches, []byte(batchID)) }

// DropClosed removes the rows of closed batches from an id on to before another.
func (w *Write) DropClosed(first, beyond string) {
	w.ops = append(w.ops, func(tx *txn) error {
		c := tx.table(bucketClosed).cursor()
		for k, _ := c.Seek([]byte(first)); k != nil && string(k) < beyond; k, _ = c.Seek([]byte(first)) {
			if err := c.Delete(); err != nil {
				return err
			}
		}
		return nil
	})
}

// DropAgent removes an agent.
func (w *Write) DropAgent(name string) { w.remove(bucketAgents, []byte(name)) }

// PutAgent stores an agent and its session.
func (w *Write) PutAgent(agent *tilthv1.Agent) {
	w.put(bucketAgents, []byte(agent.GetSpec().GetName()), encode(agent))
}

// PutWorkload stores the canonical form of a workload.
func (w *Write) PutWorkload(digest string, canonical []byte) {
	w.put(bucketWorkloads, []byte(digest), bytes.Clone(canonical))
}

// AddRecord stores a record unless it is already there. It is taken as valid (see Validate), and must not be changed
// afterwards.
func (w *Write) AddRecord(r *tilthv1.Record) { w.addRecord(r, func(bool) {}) }

func (w *Write) addRecord(r *tilthv1.Record, count func(added bool)) {
	add, group := newRecordOp(r.GetJobId(), r.GetMeasurement()), groupKey(r.GetTarget(), r.GetWorkloadDigest())
	if len(r.GetWorkload()) > 0 {
		w.PutWorkload(r.GetWorkloadDigest(), r.GetWorkload())
	}
	w.ops = append(w.ops, func(tx *txn) error {
		st, err := tx.standings.of(tx, group)
		if err != nil {
			return err
		}
		key := add.key(st)
		added := !tx.table(bucketRecords).has(key)
		count(added)
		if !added {
			return nil
		}
		return add.apply(tx, st, key)
	})
}

func (w *Write) put(bucket, key, value []byte) {
	w.ops = append(w.ops, func(tx *txn) error {
		if err := tx.table(bucket).put(key, value); err != nil {
			return fmt.Errorf("put %q in %s: %w", key, bucket, err)
		}
		return nil
	})
}

func (w *Write) remove(bucket, key []byte) {
	w.ops = append(w.ops, func(tx *txn) error { return tx.table(bucket).remove(key) })
}

// Final says whether a job in this state has ended.
func Final(s tilthv1.JobState) bool {
	switch s {
	case tilthv1.JobState_JOB_STATE_DONE, tilthv1.JobState_JOB_STATE_FAILED, tilthv1.JobState_JOB_STATE_CANCELLED:
		return true
	}
	return false
}

// recordOp adds one record of a group: its value, and the best of the group.
type recordOp struct {
	within      []byte // its key within the group
	measurement *tilthv1.Measurement
	value       []byte
}

func newRecordOp(jobID string, m *tilthv1.Measurement) recordOp {
	return recordOp{within: keyWithinGroup(m), measurement: m, value: encode(&tilthv1.Record{Measurement: m, JobId: jobID})}
}

func (o recordOp) key(st *standing) []byte { return recordKey(st.number, o.within) }

// apply stores the record under a key that nothing is stored under: a record is never changed by another.
func (o recordOp) apply(tx *txn, st *standing, key []byte) error {
	if err := tx.table(bucketRecords).put(key, o.value); err != nil {
		return err
	}
	return o.keepBest(tx, st, key)
}

// keepBest makes the record at key the best of its group if it supersedes the best so far. A best one that it refutes
// gives way to the next.
func (o recordOp) keepBest(tx *txn, st *standing, key []byte) error {
	switch {
	case o.measurement.GetError() == tilthv1.ErrorClass_ERROR_CLASS_NONE:
		return st.keep(tx, key, o.measurement)
	case Refutes(o.measurement):
		return st.refuted(tx, o.measurement.GetCandidate().GetDigest())
	}
	return nil
}

// trialsOp adds the records of one group, and the row of their events.
type trialsOp struct {
	group, place []byte
	records      []recordOp
	row          *storev1.EventRow // without the keys of the records
}

func (o trialsOp) apply(tx *txn) error {
	st, err := tx.standings.of(tx, o.group)
	if err != nil {
		return err
	}
	for i, add := range o.records {
		key := add.key(st)
		if tx.table(bucketRecords).has(key) {
			key = recordKey(st.number, keyOfTrial(add.measurement, o.row.GetEvent().GetTrial().GetBatchId()))
		}
		if err := add.apply(tx, st, key); err != nil {
			return err
		}
		o.row.Trials[i].RecordKey = key
	}
	return tx.table(bucketEvents).put(o.place, encode(o.row))
}
