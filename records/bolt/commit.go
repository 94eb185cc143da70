package bolt

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

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

// maxCommitsPerTransaction bounds how long the first of many writers waits for the others.
const maxCommitsPerTransaction = 4096

// commit is a pending write or maintenance operation.
type commit struct {
	write   *records.Write
	own     []func(*txn) error
	pending *records.Pending
}

func (c *commit) isEmpty() bool { return len(c.write.Ops()) == 0 && len(c.own) == 0 }

func (c *commit) apply(tx *txn) error {
	for _, op := range c.write.Ops() {
		if err := tx.apply(op); err != nil {
			return err
		}
	}
	for _, op := range c.own {
		if err := op(tx); err != nil {
			return err
		}
	}
	return nil
}

// Commit implements records.Store.
func (db *DB) Commit(w *records.Write) *records.Pending {
	return db.enqueue(commit{write: w, pending: records.NewPending()})
}

// maintain submits internal operations that form one transaction.
func (db *DB) maintain(ops ...func(*txn) error) *records.Pending {
	return db.enqueue(commit{write: &records.Write{}, own: ops, pending: records.NewPending()})
}

func (db *DB) enqueue(c commit) *records.Pending {
	db.mu.Lock()
	err := db.failed
	if err == nil && (db.closing || db.stopped == nil) {
		err = records.ErrClosed
	}
	if err != nil {
		db.mu.Unlock()
		c.pending.Settle(err)
		return c.pending
	}
	db.queue = append(db.queue, c)
	db.mu.Unlock()
	db.wakeLoop()
	return c.pending
}

// Observe implements records.Store.
func (db *DB) Observe(f func(records.Transaction)) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.observe = f
}

func (db *DB) wakeLoop() {
	select {
	case db.wake <- struct{}{}:
	default:
	}
}

// commitLoop is the only writer. Each transaction carries all commits submitted since the previous one.
func (db *DB) commitLoop() {
	defer close(db.stopped)
	for {
		group, closing := db.take()
		if len(group) == 0 {
			if closing {
				return
			}
			<-db.wake
			continue
		}
		db.commitGroup(group)
	}
}

func (db *DB) take() (group []commit, closing bool) {
	db.mu.Lock()
	defer db.mu.Unlock()
	n := min(len(db.queue), maxCommitsPerTransaction)
	group, db.queue = db.queue[:n:n], db.queue[n:]
	if len(db.queue) == 0 {
		db.queue = nil
	}
	return group, db.closing
}

func (db *DB) commitGroup(group []commit) {
	db.mu.Lock()
	err := db.failed
	db.mu.Unlock()
	if err == nil {
		err = db.transact(group)
	}
	if err != nil {
		db.mu.Lock()
		db.failed = cmp.Or(db.failed, err)
		db.mu.Unlock()
	}
	for _, c := range group {
		if err == nil {
			c.write.Committed()
		}
		c.pending.Settle(err)
	}
}

// transact runs a group of commits in one transaction. It does not touch the disk if all are empty.
func (db *DB) transact(group []commit) error {
	if !slices.ContainsFunc(group, func(c commit) bool { return !c.isEmpty() }) {
		return nil
	}
	begin := time.Now()
	before, synced := db.pagesWritten(), db.syncTime()
	// gofail: var beforeTransaction struct{}
	began := false
	err := guard(func() error {
		return db.bolt.Update(func(tx *bbolt.Tx) error {
			began = true
			return apply(&txn{Tx: tx, db: db, groups: db.groups}, group)
		})
	})
	if db.inMemory && errors.Is(err, bolterrors.ErrMaxSizeReached) {
		err = tooLarge(db.bolt.MaxSize)
	}
	if err != nil {
		err = fmt.Errorf("write records file %s: %w", db.path, err)
		if !began {
			db.setLost(err)
		}
		return err
	}
	// gofail: var afterTransaction struct{}
	db.touch(db.pagesWritten() - before)
	db.mu.Lock()
	observe := db.observe
	db.mu.Unlock()
	if observe != nil {
		observe(records.Transaction{Took: time.Since(begin), Sync: db.syncTime() - synced, Commits: len(group)})
	}
	return nil
}

// syncTime returns the total time spent writing transactions to disk since the file was opened.
func (db *DB) syncTime() time.Duration {
	stats := db.bolt.Stats()
	return stats.TxStats.GetWriteTime()
}

// pagesWritten returns the total size of pages written since the file was opened.
func (db *DB) pagesWritten() int64 {
	stats := db.bolt.Stats()
	return stats.TxStats.GetPageAlloc()
}

func apply(tx *txn, group []commit) error {
	// Keys of these buckets only grow, so their pages can be filled.
	tx.Bucket(bucketEvents).FillPercent = 0.9
	tx.Bucket(bucketRecords).FillPercent = 0.9
	for _, c := range group {
		if err := c.apply(tx); err != nil {
			return err
		}
	}
	return nil
}
