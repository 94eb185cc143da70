package records

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

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

// PutSpec stores a job's specification and the request that made it.
func (w *Write) PutSpec(jobID, requestID string, spec *tilthv1.JobSpec) {
	w.put(bucketSpecs, []byte(jobID), encode(spec))
	w.put(bucketRequests, []byte(requestID), []byte(jobID))
}

// PutJob stores a job's row; a job whose state is not final stays among the open ones.
func (w *Write) PutJob(row *storev1.JobRow) {
	id := []byte(row.GetJob().GetId())
	w.put(bucketJobs, id, encode(row))
	if Final(row.GetJob().GetState()) {
		w.remove(bucketOpen, id)
	} else {
		w.put(bucketOpen, id, nil)
	}
}

// PutProgress stores the progress of one task of a job.
func (w *Write) PutProgress(jobID string, task uint32, p *tilthv1.TaskProgress) {
	w.put(bucketProgress, progressKey(jobID, task), encode(p))
}

// AppendEvent stores an event that is not a trial.
func (w *Write) AppendEvent(jobID string, event *tilthv1.JobEvent) {
	row := encode(&storev1.EventRow{Event: event})
	w.put(bucketEvents, eventKey(jobID, event.GetSequence()), row)
}

// recordKeyField is the number of EventRow.record_key.
const recordKeyField = 2

// AppendTrial stores a trial's record and the event that reports it. The event's measurement is not stored: it is the record's, and must not
// be changed afterwards.
func (w *Write) AppendTrial(jobID string, event *tilthv1.JobEvent, record *tilthv1.Record) {
	add := newRecordOp(record)
	trial := event.GetTrial()
	row := encode(&storev1.EventRow{Event: &tilthv1.JobEvent{
		Sequence: event.GetSequence(), At: event.GetAt(), Event: &tilthv1.JobEvent_Trial{Trial: &tilthv1.TrialRecorded{
			TaskIndex: trial.GetTaskIndex(), BatchId: trial.GetBatchId(), BestSeconds: trial.GetBestSeconds(),
		}},
	}})
	place := eventKey(jobID, event.GetSequence())
	w.ops = append(w.ops, func(tx *txn) error {
		key, _, err := add.apply(tx)
		if err != nil {
			return err
		}
		row = protowire.AppendTag(row, recordKeyField, protowire.BytesType) // of the EventRow
		return tx.Bucket(bucketEvents).Put(place, protowire.AppendBytes(row, key))
	})
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
		c := tx.Bucket(bucketClosed).Cursor()
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

// AddRecord stores a record unless it is already there. It is taken as valid (see Validate), and must not be changed afterwards.
func (w *Write) AddRecord(r *tilthv1.Record) { w.addRecord(r, func(bool) {}) }

func (w *Write) addRecord(r *tilthv1.Record, count func(added bool)) {
	add := newRecordOp(r)
	if len(r.GetWorkload()) > 0 {
		w.PutWorkload(r.GetWorkloadDigest(), r.GetWorkload())
	}
	w.ops = append(w.ops, func(tx *txn) error {
		_, added, err := add.apply(tx)
		count(added)
		return err
	})
}

func (w *Write) put(bucket, key, value []byte) {
	w.ops = append(w.ops, func(tx *txn) error {
		if err := tx.Bucket(bucket).Put(key, value); err != nil {
			return fmt.Errorf("put %q in %s: %w", key, bucket, err)
		}
		return nil
	})
}

func (w *Write) remove(bucket, key []byte) {
	w.ops = append(w.ops, func(tx *txn) error { return tx.Bucket(bucket).Delete(key) })
}

// Final says whether a job in this state has ended.
func Final(s tilthv1.JobState) bool {
	switch s {
	case tilthv1.JobState_JOB_STATE_DONE, tilthv1.JobState_JOB_STATE_FAILED, tilthv1.JobState_JOB_STATE_CANCELLED:
		return true
	}
	return false
}

// encode panics on what cannot be encoded: text that is not UTF-8, which the wire has refused before.
func encode(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", m, err))
	}
	return b
}

// recordOp adds one record: its group, its value, and the best of its group.
type recordOp struct {
	group       []byte
	measurement *tilthv1.Measurement
	value       []byte
}

func newRecordOp(r *tilthv1.Record) recordOp {
	value := encode(&tilthv1.Record{Measurement: r.GetMeasurement(), JobId: r.GetJobId()})
	return recordOp{
		group:       groupKey(r.GetTarget(), r.GetWorkloadDigest()),
		measurement: r.GetMeasurement(),
		value:       value,
	}
}

func (o recordOp) apply(tx *txn) (key []byte, added bool, err error) {
	st, err := tx.standings.of(tx.Tx, o.group)
	if err != nil {
		return nil, false, err
	}
	records := tx.Bucket(bucketRecords)
	key = recordKey(st.number, o.measurement)
	if records.Get(key) != nil {
		return key, false, nil
	}
	if err := records.Put(key, o.value); err != nil {
		return nil, false, err
	}
	return key, true, o.keepBest(tx.Tx, st, key)
}

// keepBest makes the record at key the best of its group if it supersedes the best so far. A best one that it refutes gives way to
// the next.
func (o recordOp) keepBest(tx *bbolt.Tx, st *standing, key []byte) error {
	switch {
	case o.measurement.GetError() == tilthv1.ErrorClass_ERROR_CLASS_NONE:
		return st.keep(tx, key, o.measurement)
	case Refutes(o.measurement):
		return st.refuted(tx, o.measurement.GetCandidate().GetDigest())
	}
	return nil
}
