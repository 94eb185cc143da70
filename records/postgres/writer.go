package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tilth-dev/tilth/records"
)

const (
	// maxCommits bounds how long the first of many writers waits for the others.
	maxCommits = 1024
	// defaultTransactionTimeout bounds a transaction. If it takes longer, the server or its standby counts as
	// unresponsive, and the transaction is retried.
	defaultTransactionTimeout = time.Minute
	// checkEvery is the interval at which an idle process verifies that it still has the database.
	checkEvery = 2 * time.Second
	// firstRetry and longestRetry bound the delay between attempts to reach an unavailable server.
	firstRetry, longestRetry = 50 * time.Millisecond, 2 * time.Second
)

// commit is a pending write or maintenance operation. It may be attempted several times.
type commit struct {
	write   *records.Write
	own     func(*txn) error
	common  bool // own changes records, which all shards share
	pending *records.Pending
}

func (c *commit) isEmpty() bool {
	return len(c.write.Ops()) == 0 && c.own == nil && !c.write.Confirms
}

func (c *commit) apply(t *txn) error {
	for _, op := range c.write.Ops() {
		if err := t.apply(op); err != nil {
			return err
		}
	}
	if c.own != nil {
		return c.own(t)
	}
	return nil
}

// Commit implements records.Store. While the server is unavailable, commits wait.
func (db *DB) Commit(w *records.Write) *records.Pending {
	return db.enqueue(commit{write: w, pending: records.NewPending()})
}

// maintain submits an internal operation that forms one transaction. It may run several times, but takes effect once.
func (db *DB) maintain(own func(*txn) error) *records.Pending {
	return db.enqueue(commit{write: &records.Write{}, own: own, pending: records.NewPending()})
}

// maintainRecords is like maintain for operations that change records.
func (db *DB) maintainRecords(own func(*txn) error) *records.Pending {
	return db.enqueue(commit{write: &records.Write{}, own: own, common: true, pending: records.NewPending()})
}

func (db *DB) enqueue(c commit) *records.Pending {
	db.mu.Lock()
	err := db.failed
	if err == nil && db.closing {
		err = records.ErrClosed
	}
	if err == nil {
		db.queue = append(db.queue, c)
	}
	db.mu.Unlock()
	if err != nil {
		c.pending.Settle(err)
		return c.pending
	}
	signal(db.wake)
	return c.pending
}

// write is the only writer, until Close. Each transaction carries all commits submitted since the previous one.
func (db *DB) write() {
	defer close(db.stopped)
	defer db.disconnect()
	check := time.Tick(checkEvery)
	for {
		group, closing := db.take()
		switch {
		case len(group) > 0:
			settle(group, db.store(group))
			continue
		case closing:
			return
		}
		select {
		case <-db.wake:
		case <-db.ending:
		case <-db.doubted:
			db.check()
		case <-check:
			db.check()
		}
	}
}

func (db *DB) take() (group []commit, closing bool) {
	db.mu.Lock()
	defer db.mu.Unlock()
	n := min(len(db.queue), maxCommits)
	group, db.queue = db.queue[:n:n], db.queue[n:]
	if len(db.queue) == 0 {
		db.queue = nil
	}
	return group, db.closing
}

// settle completes commits with their result.
func settle(group []commit, err error) {
	for _, c := range group {
		if err == nil {
			c.write.Committed()
		}
		c.pending.Settle(err)
	}
}

// store stores a group of commits in one transaction and retries while the server is unavailable. An error is
// permanent. A group without changes does not touch the database, unless it must confirm that this process has it; see
// Write.Confirms.
func (db *DB) store(group []commit) error {
	if err := db.broken(); err != nil {
		return err
	}
	if !slices.ContainsFunc(group, func(c commit) bool { return !c.isEmpty() }) {
		return nil
	}
	number := db.transaction + 1
	for wait := firstRetry; ; wait = min(2*wait, longestRetry) {
		err := db.try(func(ctx context.Context) error { return db.transact(ctx, number, group) })
		if err == nil {
			return db.broken()
		}
		if err := pause(context.Background(), db.ending, wait); err != nil {
			return db.fail(err)
		}
	}
}

// check verifies the epoch, and that the server is reachable.
func (db *DB) check() {
	if db.broken() == nil {
		_ = db.try(func(ctx context.Context) error {
			last, err := db.last(ctx, db.conn)
			if err == nil && last != db.transaction {
				err = fmt.Errorf("%w: its last transaction is %d, not %d", errOther, last, db.transaction)
			}
			return err
		})
	}
}

// try runs work on a writer connection. It returns transient errors, when the server is unavailable. A permanent error
// fails the store and is not returned.
func (db *DB) try(work func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(db.working, db.timeout)
	defer cancel()
	err := db.resume(ctx)
	if err == nil {
		err = work(ctx)
	}
	if err == nil {
		db.setUnavailable(nil)
		return nil
	}
	db.disconnect()
	if !isTransient(err) {
		_ = db.fail(err)
		return nil
	}
	db.at = (db.at + 1) % len(db.servers) // a server that accepts connections but does not respond must not block the others
	db.setUnavailable(err)
	return err
}

// transact runs a group's operations in one transaction, unless the database already has that transaction.
func (db *DB) transact(ctx context.Context, number int64, group []commit) error {
	if db.transaction == number {
		return nil
	}
	begin := time.Now()
	tx, err := db.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	if err != nil {
		return err
	}
	if err := db.fence(ctx, tx, number); err != nil {
		return err
	}
	if err := apply(&txn{ctx: ctx, tx: tx, shard: db.shard, shared: db.opts.Shards > 1, groups: db.groups, there: map[place]bool{}}, group); err != nil {
		return err
	}
	sync := time.Now()
	// gofail: var beforeCommit struct{}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	// gofail: var afterCommit struct{}
	if err := db.conn.confirmed(); err != nil { // treat it like a lost response: ask again
		return err
	}
	db.transaction = number
	db.mu.Lock()
	observe := db.observe
	db.mu.Unlock()
	if observe != nil {
		observe(records.Transaction{Took: time.Since(begin), Sync: time.Since(sync), Commits: len(group)})
	}
	return nil
}

// disconnect closes the writer's connection and thus releases the lock. It drops the cache, which may be stale
// afterwards.
func (db *DB) disconnect() {
	db.groups = newGroups()
	if db.conn == nil {
		return
	}
	hangUp(db.conn.Conn)
	db.conn = nil
}

// fail makes all later commits fail, since they may depend on what was lost, and notifies the observer.
func (db *DB) fail(err error) error {
	db.mu.Lock()
	first := db.failed == nil
	if first {
		db.failed = fmt.Errorf("write %s: %w", db.name, err)
	}
	failed, tell := db.failed, db.onFailed
	db.mu.Unlock()
	if first && tell != nil && !errors.Is(err, records.ErrClosed) {
		tell(failed)
	}
	return failed
}

// broken returns why all commits fail, or nil.
func (db *DB) broken() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.failed
}

// apply makes one change.
func (t *txn) apply(op records.Op) error {
	switch op := op.(type) {
	case records.PutRow:
		t.putRow(op)
	case records.DropRow:
		t.dropRow(op)
	case records.PutJob:
		t.do(`INSERT INTO jobs (id, message, open, shard) VALUES ($1, $2, $3, $4)
			ON CONFLICT (id) DO UPDATE SET message = excluded.message, open = excluded.open`, []byte(op.ID), op.Row, !op.Final, t.shard)
	case records.PutNew:
		t.putNew(op)
	case records.PutProgress:
		t.putProgress(op.JobID, op.Task, op.Row)
	case records.AppendEvent:
		t.putEvent(op.JobID, op.Sequence, op.Row)
	case records.AppendTrials:
		return t.appendTrials(op)
	case records.DropJob:
		t.dropJob(op.ID)
	case records.DropClosed:
		t.do("DELETE FROM closed_batches WHERE id >= $1 AND id < $2", []byte(op.First), []byte(op.Beyond))
	case records.AddRecord:
		_, err := t.addRecord(op)
		return err
	case records.SuspectBests:
		return t.suspectBests(op)
	default:
		return fmt.Errorf("no such change: %T", op)
	}
	return nil
}

// put stores a row of a table of messages by id.
func (t *txn) put(table, id string, message []byte) {
	t.do("INSERT INTO "+table+" (id, message) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET message = excluded.message", []byte(id), message)
}

func (t *txn) remove(table, id string) { t.do("DELETE FROM "+table+" WHERE id = $1", []byte(id)) }

// putRow stores a row of a table of messages. Names of agents and devices may be too long for a key, so their index
// uses digests.
func (t *txn) putRow(op records.PutRow) {
	switch table := rowTables[op.Kind].name; op.Kind {
	case records.RowClosed:
		t.put(table, op.Key, op.Row)
	case records.RowAgent, records.RowDevice:
		t.do("INSERT INTO "+table+" (name, message, shard) VALUES ($1, $2, $3) ON CONFLICT (shard, sha256(name)) DO UPDATE SET message = excluded.message",
			[]byte(op.Key), op.Row, t.shard)
	default:
		t.do("INSERT INTO "+table+" (id, message, shard) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET message = excluded.message",
			[]byte(op.Key), op.Row, t.shard)
	}
}

func (t *txn) dropRow(op records.DropRow) {
	table := rowTables[op.Kind].name
	if op.Kind == records.RowAgent || op.Kind == records.RowDevice {
		t.do("DELETE FROM "+table+" WHERE sha256(name) = sha256($1) AND shard = $2", []byte(op.Key), t.shard)
		return
	}
	t.remove(table, op.Key)
}

func (t *txn) putNew(op records.PutNew) {
	t.put("specs", op.ID, op.Spec)
	t.do("INSERT INTO requests (key, job) VALUES ($1, $2) ON CONFLICT (sha256(key)) DO UPDATE SET job = excluded.job",
		op.Request, []byte(op.ID))
	for i, p := range op.Progress {
		t.putProgress(op.ID, uint32(i), p)
	}
	for _, task := range op.Tasks {
		t.putWorkload(task.GetWorkloadDigest(), task.GetWorkload())
	}
}

func (t *txn) putProgress(job string, task uint32, message []byte) {
	t.do("INSERT INTO progress (job, task, message) VALUES ($1, $2, $3) ON CONFLICT (job, task) DO UPDATE SET message = excluded.message",
		[]byte(job), int64(task), message)
}

func (t *txn) putWorkload(digest string, canonical []byte) {
	t.do("INSERT INTO workloads (digest, canonical) VALUES ($1, $2) ON CONFLICT DO NOTHING", []byte(digest), present(canonical))
}

func (t *txn) putEvent(job string, sequence uint64, message []byte) {
	t.do("INSERT INTO events (job, sequence, message) VALUES ($1, $2, $3) ON CONFLICT (job, sequence) DO UPDATE SET message = excluded.message",
		[]byte(job), int64(sequence), message)
}

// appendTrials adds the records of one group and the row of their events.
func (t *txn) appendTrials(op records.AppendTrials) error {
	g, err := t.groups.of(t, op.Group)
	if err != nil {
		return err
	}
	added := make([]added, len(op.Records))
	for i, e := range op.Records {
		at := place{g.number, e.Key}
		if t.there[at] {
			at.key = records.KeyOfTrial(e.Measurement, op.Row.GetEvent().GetTrial().GetBatchId())
		}
		t.there[at] = true
		added[i].key, added[i].entry = at.key, e
		op.Row.Trials[i].RecordKey = at.bytes()
	}
	t.putEvent(op.JobID, op.Sequence, records.Encode(op.Row))
	return t.addEntries(g, added)
}

// addRecord adds a record unless it exists. The transaction must have looked it up before.
func (t *txn) addRecord(op records.AddRecord) (isNew bool, err error) {
	if len(op.Workload) > 0 {
		t.putWorkload(op.Group.Workload, op.Workload)
	}
	g, err := t.groups.of(t, op.Group)
	if err != nil {
		return false, err
	}
	at := place{g.number, op.Record.Key}
	if t.there[at] {
		return false, nil
	}
	t.there[at] = true
	return true, t.addEntries(g, []added{{at.key, op.Record}})
}

// added is a record with the key under which it is stored.
type added struct {
	key   records.Key
	entry records.Entry
}

// addEntries stores records of a group under unused keys; records are never overwritten. If one refutes a best record,
// the next best replaces that.
func (t *txn) addEntries(g *group, all []added) error {
	keys, messages := make([][]byte, len(all)), make([][]byte, len(all))
	for i := range all {
		keys[i], messages[i] = all[i].key[:], all[i].entry.Row
	}
	t.do("INSERT INTO records (grp, key, message) SELECT $1, * FROM unnest($2::bytea[], $3::bytea[]) ON CONFLICT DO NOTHING",
		g.number, keys, messages)
	changed := false
	for _, a := range all {
		m := a.entry.Measurement
		switch {
		case records.Verified(m):
			changed = g.best.Offer(a.key, m) || changed
		case records.Disqualifies(m) && g.best.HasCandidate(m.GetCandidate().GetDigest()):
			if err := g.choose(t); err != nil {
				return err
			}
			changed = true
		}
	}
	if changed {
		t.do("UPDATE groups SET best = $2 WHERE number = $1", g.number, g.keys())
	}
	return nil
}

// dropJob removes an ended job, except for what Sweep removes.
func (t *txn) dropJob(id string) {
	key := []byte(id)
	// Keep the number, so that it is never reused.
	t.do("UPDATE tracker SET last_job = greatest(last_job, $1) WHERE shard = $2", key, t.shard)
	t.do("INSERT INTO dropped (id, shard) VALUES ($1, $2) ON CONFLICT DO NOTHING", key, t.shard)
	for _, table := range []string{"jobs", "specs", "ended"} {
		t.remove(table, id)
	}
	t.do("DELETE FROM requests WHERE job = $1", key)
}
