package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tilth-dev/tilth/records"
)

// advisoryLock is the key of the lock that the process which has the database, or its shard 0, holds for as long as
// its connection lives; see lockOf. Locks are a database's own. The number is "tilth" in ASCII.
const advisoryLock = 0x74696c7468

// errHeld is when another connection holds the lock.
var errHeld = errors.New("another connection holds the tracker's lock")

// connect makes a connection of the writer, which holds the lock. ErrTakenOver when another process has begun an epoch
// meanwhile.
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
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	held, err := tryLock(ctx, s, db.shard)
	if err != nil {
		return nil, err
	}
	if !held {
		// By whoever took over, or by this process's last connection, of whose end the server does not know yet.
		if err := db.checkEpoch(ctx, s.Conn); err != nil {
			return nil, err
		}
		return nil, errHeld
	}
	return s, nil
}

// lockOf is the key of the lock of a shard.
func lockOf(shard int) int64 { return int64(shard)<<40 | advisoryLock }

// tryLock takes the lock of a shard, if it is free.
func tryLock(ctx context.Context, s *session, shard int) (held bool, err error) {
	err = s.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", lockOf(shard)).Scan(&held)
	return held, err
}

// takeOver begins an epoch on the connection that holds the lock: every other process that still believes to have the
// database writes nothing from here on. ErrUnfinished when only a part was copied into it.
func (db *DB) takeOver(ctx context.Context) error {
	err := db.briefly(ctx, func(ctx context.Context) error { return quieten(ctx, db.conn.Conn, db.shard) })
	if err == nil { // another process may have migrated it while this one waited
		err = db.migrate(ctx)
	}
	if err == nil { // before it gets its shards: what goes on with the conversion wants one
		err = db.briefly(ctx, func(ctx context.Context) error { return checkConverted(ctx, db.conn.Conn) })
	}
	if err == nil {
		err = db.shareOut(ctx)
	}
	if err != nil {
		return err
	}
	// What is written from here on was not converted.
	if err := db.beginEpoch(ctx, ", life = $2, conversion = ''", db.life); err != nil {
		return err
	}
	db.use(db.conn)
	return nil
}

// briefly does what a server does at once that answers: nobody else takes over meanwhile.
func (db *DB) briefly(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, db.timeout)
	defer cancel()
	return do(ctx)
}

// atLength does what takes as long as there are rows.
func (db *DB) atLength(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	return do(ctx)
}

// acquire makes the connection that holds the lock. ErrLocked when another process does not give it up in time.
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

// beginEpoch sets what more is given, and waits until a synchronous standby has the new epoch, where there is one, and
// so all that was written before: what a server restored after a crash may lack on the standby.
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

// use notes which server is written from here on.
func (db *DB) use(s *session) {
	db.conn, db.timeline = s, s.timeline
	if before := db.written.Swap(s.server); before != s.server && db.pool != nil {
		db.pool.Reset() // a look-up may have connected to the other one since the writer lost it
	}
}

// errOther is when the database's last transaction is not the one that this process left: a backup was restored, or a
// standby promoted that had not heard of the last transactions.
var errOther = errors.New("the database is not as this tracker left it: restart the tracker to go on with what it has")

// resume connects anew where there is no connection, and finds out which was the last transaction that the database
// has. ErrTakenOver when another process has begun an epoch meanwhile.
func (db *DB) resume(ctx context.Context) error {
	if db.conn != nil {
		return nil
	}
	conn, err := db.connect(ctx)
	if err != nil {
		return err
	}
	last, err := db.last(ctx, conn)
	if err == nil && last != db.transaction && last != db.transaction+1 { // the next one may be of the last connection
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

// last is the number of the last transaction that the database has. A transaction of an earlier connection may be
// about to commit: its lock of the row is waited for. So is a synchronous standby, since locking a row is a change:
// when the number is returned, the standby has that transaction, too.
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

// checkEpoch looks at the epoch without the lock.
func (db *DB) checkEpoch(ctx context.Context, conn *pgx.Conn) error {
	if db.epoch == 0 { // this process has begun none
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

// fence makes a transaction of the writer one of its epoch, and gives it its number. The row stays locked until the
// transaction ends, so that nobody takes over amid it.
func (db *DB) fence(ctx context.Context, tx pgx.Tx, number int64) error {
	done, err := tx.Exec(ctx, "UPDATE tracker SET transaction = $1 WHERE epoch = $2 AND shard = $3", number, db.epoch, db.shard)
	if err == nil && done.RowsAffected() != 1 {
		err = fmt.Errorf("%w: this one began epoch %d, which is over", records.ErrTakenOver, db.epoch)
	}
	return err
}

// pause waits, but not beyond the end of ctx or of stop (nil = there is none).
func pause(ctx context.Context, stop <-chan struct{}, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-stop:
		return records.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
