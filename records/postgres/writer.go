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
	// mostCommits bounds how long the first of many writers waits for the others.
	mostCommits = 1024
	// defaultTransactionTimeout bounds a transaction. One that takes longer found no server that answers, or none
	// whose standby does, and is tried again.
	defaultTransactionTimeout = time.Minute
	// checkEvery is how often a process that has nothing to write asks whether it still has the database.
	checkEvery = 2 * time.Second
	// Between two tries to reach a server that is away.
	firstRetry, longestRetry = 50 * time.Millisecond, 2 * time.Second
)

// commit is a write, or the store's own work, under way. It may be tried several times.
type commit struct {
	write   *records.Write
	own     func(*txn) error
	common  bool // own changes records, which are common to all shards
	pending *records.Pending
}

func (c *commit) isEmpty() bool {
	return len(c.write.Ops()) == 0 && c.own == nil && !c.write.Confirms()
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

// Commit implements records.Store. While the server is away, what is handed in waits.
func (db *DB) Commit(w *records.Write) *records.Pending {
	return db.hand(commit{write: w, pending: records.NewPending()})
}

// maintain hands in the store's own work, of one transaction. It may be done several times, and counts once.
func (db *DB) maintain(own func(*txn) error) *records.Pending {
	return db.hand(commit{write: &records.Write{}, own: own, pending: records.NewPending()})
}

// maintainRecords is maintain for work that changes records.
func (db *DB) maintainRecords(own func(*txn) error) *records.Pending {
	return db.hand(commit{write: &records.Write{}, own: own, common: true, pending: records.NewPending()})
}

func (db *DB) hand(c commit) *records.Pending {
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
	select {
	case db.wake <- struct{}{}:
	default:
	}
	return c.pending
}

// write is the only writer: it commits what has gathered since the last transaction, all in one, until Close.
func (db *DB) write() {
	defer close(db.stopped)
	defer db.disconnect()
	check := time.NewTicker(checkEvery)
	defer check.Stop()
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
		case <-check.C:
			db.check()
		}
	}
}

func (db *DB) take() (group []commit, closing bool) {
	db.mu.Lock()
	defer db.mu.Unlock()
	n := min(len(db.queue), mostCommits)
	group, db.queue = db.queue[:n:n], db.queue[n:]
	if len(db.queue) == 0 {
		db.queue = nil
	}
	return group, db.closing
}

// settle tells those who wait what came of their commits.
func settle(group []commit, err error) {
	for _, c := range group {
		if err == nil {
			c.write.Committed()
		}
		c.pending.Settle(err)
	}
}

// store stores a group in one transaction, however often the server goes away meanwhile. An error is for good. A group
// without any changes touches no database, unless it is to be confirmed that this process has that: see Write.Confirm.
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

// check asks the server for the epoch, and whether it is there at all.
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

// try has work done on a connection of the writer. Its error passes: the server is away. What does not pass fails the
// store, and is no error here.
func (db *DB) try(work func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(db.working, db.timeout)
	defer cancel()
	err := db.resume(ctx)
	if err == nil {
		err = work(ctx)
	}
	if err == nil {
		db.setAway(nil)
		return nil
	}
	db.disconnect()
	if !passes(err) {
		_ = db.fail(err)
		return nil
	}
	db.at = (db.at + 1) % len(db.servers) // one that takes connections, and does no more, must not hold up the others
	db.setAway(err)
	return err
}

// transact runs a group's operations in one transaction, unless the database has that transaction already.
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
	if err := db.conn.confirmed(); err != nil { // as if the answer was lost: it is asked for again
		return err
	}
	db.transaction = number
	db.tell(records.Transaction{Took: time.Since(begin), Sync: time.Since(sync), Commits: len(group)})
	return nil
}

func (db *DB) tell(of records.Transaction) {
	db.mu.Lock()
	observe := db.observe
	db.mu.Unlock()
	if observe != nil {
		observe(of)
	}
}

// disconnect gives up the writer's connection, and with it the lock. What was remembered of the database may not be
// so.
func (db *DB) disconnect() {
	db.groups = newGroups()
	if db.conn == nil {
		return
	}
	hangUp(db.conn.Conn)
	db.conn = nil
}

// fail has every later commit fail: what follows may build on what was lost. Who asked for it is told.
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

// broken is why every commit fails; nil while none does.
func (db *DB) broken() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.failed
}
