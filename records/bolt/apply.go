package bolt

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/records"
)

// apply makes one change.
func (tx *txn) apply(op records.Op) error {
	switch op := op.(type) {
	case records.PutRow:
		return tx.put(sameRows[op.Kind], []byte(op.Key), op.Row)
	case records.DropRow:
		return tx.table(sameRows[op.Kind]).remove([]byte(op.Key))
	case records.PutJob:
		return tx.putJob(op)
	case records.PutNew:
		return tx.putNew(op)
	case records.PutProgress:
		return tx.put(bucketProgress, progressKey(op.JobID, op.Task), op.Row)
	case records.AppendEvent:
		return tx.put(bucketEvents, eventKey(op.JobID, op.Sequence), op.Row)
	case records.AppendTrials:
		return tx.appendTrials(op)
	case records.DropJob:
		return tx.dropJob(op.ID)
	case records.DropClosed:
		return tx.dropClosed(op.First, op.Beyond)
	case records.AddRecord:
		_, err := tx.addRecord(op)
		return err
	case records.SuspectBests:
		return tx.suspectBests(op)
	}
	return fmt.Errorf("no such change: %T", op)
}

func (tx *txn) put(bucket, key, value []byte) error {
	if err := tx.table(bucket).put(key, value); err != nil {
		return fmt.Errorf("put %q in %s: %w", key, bucket, err)
	}
	return nil
}

func (tx *txn) putJob(op records.PutJob) error {
	id := []byte(op.ID)
	if err := tx.put(bucketJobs, id, op.Row); err != nil {
		return err
	}
	open := tx.table(bucketOpen)
	if op.Final {
		return open.remove(id)
	}
	if open.has(id) {
		return nil // only the first row of a job changes this page
	}
	return open.put(id, nil)
}

func (tx *txn) putNew(op records.PutNew) error {
	if err := tx.put(bucketSpecs, []byte(op.ID), op.Spec); err != nil {
		return err
	}
	if err := tx.put(bucketRequests, op.Request, []byte(op.ID)); err != nil {
		return err
	}
	for i, p := range op.Progress {
		if err := tx.put(bucketProgress, progressKey(op.ID, uint32(i)), p); err != nil {
			return err
		}
	}
	for _, t := range op.Tasks {
		if err := tx.put(bucketWorkloads, []byte(t.GetWorkloadDigest()), slices.Clip(t.GetWorkload())); err != nil {
			return err
		}
	}
	return nil
}

func (tx *txn) dropClosed(first, beyond string) error {
	c := tx.table(bucketClosed).cursor()
	for k, _ := c.Seek([]byte(first)); k != nil && string(k) < beyond; k, _ = c.Seek([]byte(first)) {
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}

// addRecord adds a record unless it exists.
func (tx *txn) addRecord(op records.AddRecord) (added bool, err error) {
	if len(op.Workload) > 0 {
		if err := tx.put(bucketWorkloads, []byte(op.Group.Workload), slices.Clip(op.Workload)); err != nil {
			return false, err
		}
	}
	g, err := tx.groups.of(tx, op.Group)
	if err != nil {
		return false, err
	}
	if tx.table(bucketRecords).has(recordKey(g.number, op.Record.Key)) {
		return false, nil
	}
	return true, tx.addEntry(g, op.Record, op.Record.Key)
}

// addEntry stores a record under an unused key; records are never overwritten. If it refutes a best record, the next
// best replaces that.
func (tx *txn) addEntry(g *group, e records.Entry, key records.Key) error {
	if err := tx.table(bucketRecords).put(recordKey(g.number, key), e.Row); err != nil {
		return err
	}
	switch {
	case records.Verified(e.Measurement):
		if g.bests.Offer(key, e.Measurement) {
			return g.write(tx)
		}
	case records.Disqualifies(e.Measurement) && g.bests.HasCandidate(e.Measurement.GetCandidate().GetDigest()):
		return g.chooseAgain(tx)
	}
	return nil
}

// appendTrials adds the records of one group, and the row of their events.
func (tx *txn) appendTrials(op records.AppendTrials) error {
	g, err := tx.groups.of(tx, op.Group)
	if err != nil {
		return err
	}
	for i, e := range op.Records {
		key := e.Key
		if tx.table(bucketRecords).has(recordKey(g.number, key)) {
			key = records.KeyOfTrial(e.Measurement, op.Row.GetEvent().GetTrial().GetBatchId())
		}
		if err := tx.addEntry(g, e, key); err != nil {
			return err
		}
		op.Row.Trials[i].RecordKey = recordKey(g.number, key)
	}
	return tx.put(bucketEvents, eventKey(op.JobID, op.Sequence), records.Encode(op.Row))
}
