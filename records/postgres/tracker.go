package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tilth-dev/tilth/records"
)

// advisoryLock is the key of the lock that the process with the database, or with shard 0, holds while its connection
// lives; see lockOf. Advisory locks are local to a database. The number is "tilth" in ASCII.
const advisoryLock = 0x74696c7468

// errHeld reports that another connection holds the lock.
var errHeld = errors.New("another connection holds the tracker's lock")

// connect creates a writer connection that holds the lock. It returns ErrTakenOver if another process has started an
// epoch in the meantime.
func (db *DB) connect(ctx context.Context) (_ *session, err error) {
	s, err := db.reach(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			hangUp(s.Conn)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, s.server.ConnectTimeout)
	defer cancel()
	held, err := tryLock(ctx, s, db.shard)
	if err != nil {
		return nil, err
	}
	if !held {
		// The holder has either taken over or is this process's previous connection, whose end the server has not
		// noticed yet.
		if err := db.checkEpoch(ctx, s.Conn); err != nil {
			return nil, err
		}
		return nil, errHeld
	}
	return s, nil
}

// lockOf returns the key of a shard's lock.
func lockOf(shard int) int64 { return int64(shard)<<40 | advisoryLock }

// tryLock acquires a shard's lock if it is free.
func tryLock(ctx context.Context, s *session, shard int) (held bool, err error) {
	err = s.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", lockOf(shard)).Scan(&held)
	return held, err
}

// takeOver starts an epoch on the connection that holds the lock. Any other process that still believes it has the
// database cannot write from then on. It returns ErrUnfinished for an unfinished conversion.
func (db *DB) takeOver(ctx context.Context) error {
	err := limited(ctx, db.timeout, func(ctx context.Context) error { return clearHeartbeat(ctx, db.conn.Conn, db.shard) })
	if err == nil { // another process may have migrated it in the meantime
		err = db.migrate(ctx)
	}
	if err == nil { // before the division into shards: resuming the conversion requires one shard
		err = limited(ctx, db.timeout, func(ctx context.Context) error { return checkConverted(ctx, db.conn.Conn) })
	}
	if err == nil {
		err = db.shareOut(ctx)
	}
	if err != nil {
		return err
	}
	// Anything written from now on did not come from the conversion.
	if err := db.beginEpoch(ctx, ", life = $2, conversion = ''", db.generation); err != nil {
		return err
	}
	db.use(db.conn)
	return nil
}

// limited runs an operation with a time limit: DB.timeout if a responsive server completes it quickly, changeTimeout
// if its duration depends on the number of rows.
func limited(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

// acquire creates the connection that holds the lock. It returns ErrLocked if another process does not release it in
// time.
func (db *DB) acquire(ctx context.Context, patience time.Duration) (err error) {
	for begin := time.Now(); ; {
		if db.conn, err = db.connect(ctx); !errors.Is(err, errHeld) {
			return err
		}
		if time.Since(begin) >= patience {
			return records.ErrLocked
		}
		if err := pause(ctx, nil, lockPoll); err != nil {
			return err
		}
	}
}

// beginEpoch starts an epoch and applies the additional assignments in more. If there is a synchronous standby, it
// waits until the standby has the new epoch and thus everything written before, which a server restored after a crash
// may not have sent.
func (db *DB) beginEpoch(ctx context.Context, more string, args ...any) error {
	within, cancel := context.WithTimeoutCause(ctx, db.timeout, errors.New("is its synchronous standby away?"))
	defer cancel()
	err := db.conn.QueryRow(within, "UPDATE tracker SET epoch = epoch + 1"+more+" WHERE shard = $1 RETURNING epoch, transaction", append([]any{db.shard}, args...)...).
		Scan(&db.epoch, &db.transaction)
	if err == nil {
		err = db.conn.confirmed()
	}
	if err != nil && within.Err() != nil {
		err = fmt.Errorf("%w: %w", err, context.Cause(within))
	}
	if err != nil {
		return fmt.Errorf("take the database over: %w", err)
	}
	return nil
}

// use switches to the server of a session.
func (db *DB) use(s *session) {
	db.conn, db.timeline = s, s.timeline
	if before := db.written.Swap(s.server); before != s.server && db.pool != nil {
		db.pool.Reset() // a look-up may still be connected to the previous server
	}
}

// errOther reports that the database is not in the state that this process left: a backup was restored, or a standby
// that lacked the last transactions was promoted.
var errOther = errors.New("the database changed since this tracker's last transaction: restart the tracker")

// resume reconnects if there is no connection, and determines the last transaction in the database. It returns
// ErrTakenOver if another process has started an epoch in the meantime.
func (db *DB) resume(ctx context.Context) error {
	if db.conn != nil {
		return nil
	}
	conn, err := db.connect(ctx)
	if err != nil {
		return err
	}
	last, err := db.last(ctx, conn)
	// The previous connection may have committed the next transaction.
	if err == nil && last != db.transaction && last != db.transaction+1 {
		err = fmt.Errorf("%w: its last transaction is %d, not %d", errOther, last, db.transaction)
	}
	if err != nil {
		hangUp(conn.Conn)
		return err
	}
	db.use(conn)
	db.transaction = last
	return nil
}

// last returns the number of the last transaction in the database. It waits for a transaction of an earlier connection
// that is about to commit, by locking the row. Since locking a row is a change, it also waits until a synchronous
// standby has that transaction.
func (db *DB) last(ctx context.Context, s *session) (transaction int64, err error) {
	var epoch int64
	if err := s.QueryRow(ctx, "SELECT epoch, transaction FROM tracker WHERE shard = $1 FOR UPDATE", db.shard).Scan(&epoch, &transaction); err != nil {
		return 0, err
	}
	if err := s.confirmed(); err != nil {
		return 0, err
	}
	return transaction, db.compare(epoch)
}

// checkEpoch compares the epoch without locking it.
func (db *DB) checkEpoch(ctx context.Context, conn *pgx.Conn) error {
	if db.epoch == 0 { // this process has not started one
		return nil
	}
	var epoch int64
	if err := conn.QueryRow(ctx, "SELECT epoch FROM tracker WHERE shard = $1", db.shard).Scan(&epoch); err != nil {
		return err
	}
	return db.compare(epoch)
}

func (db *DB) compare(epoch int64) error {
	switch {
	case epoch == db.epoch:
		return nil
	case epoch < db.epoch:
		return fmt.Errorf("%w: its epoch is %d, not %d", errOther, epoch, db.epoch)
	}
	return fmt.Errorf("%w: this one began epoch %d, it is %d", records.ErrTakenOver, db.epoch, epoch)
}

// fence binds a transaction of the writer to the epoch and assigns its number. The row stays locked until the
// transaction ends, so no takeover can happen in between.
func (db *DB) fence(ctx context.Context, tx pgx.Tx, number int64) error {
	done, err := tx.Exec(ctx, "UPDATE tracker SET transaction = $1 WHERE epoch = $2 AND shard = $3", number, db.epoch, db.shard)
	if err == nil && done.RowsAffected() != 1 {
		err = fmt.Errorf("%w: this one began epoch %d, which is over", records.ErrTakenOver, db.epoch)
	}
	return err
}

// pause waits until the time has passed, ctx ends, or stop is closed (nil never).
func pause(ctx context.Context, stop <-chan struct{}, wait time.Duration) error {
	select {
	case <-time.After(wait):
		return nil
	case <-stop:
		return records.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
