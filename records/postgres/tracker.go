package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tilth-dev/tilth/records"
)

// advisoryLock is the key of the lock that the process which has the database holds for as long as its connection
// lives. Locks are a database's own. The number is "tilth" in ASCII.
const advisoryLock = 0x74696c7468

// errHeld is when another connection holds the lock.
var errHeld = errors.New("another connection holds the tracker's lock")

// connect makes a connection of the writer, which holds the lock.
func (db *DB) connect(ctx context.Context) (_ *pgx.Conn, err error) {
	conn, err := pgx.ConnectConfig(ctx, db.cfg.Copy())
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, conn.Close(ctx))
		}
	}()
	// Acknowledged means on disk, whatever the database's settings are.
	_, err = conn.Exec(ctx, "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'")
	if err != nil {
		return nil, err
	}
	var held bool
	if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", int64(advisoryLock)).Scan(&held); err != nil {
		return nil, err
	}
	if !held {
		return nil, errHeld
	}
	return conn, nil
}

// takeOver begins an epoch: every other process that still believes to have the database writes nothing from here on.
// ErrLocked when one has it, and does not give it up in time.
func (db *DB) takeOver(ctx context.Context, patience time.Duration) error {
	for begin := time.Now(); ; {
		conn, err := db.connect(ctx)
		if err == nil {
			db.conn = conn
			break
		}
		if !errors.Is(err, errHeld) {
			return err
		}
		if time.Since(begin) >= patience {
			return fmt.Errorf("%w: stop it, or ask it instead (--tracker)", records.ErrLocked)
		}
		if err := pause(ctx, nil, lockPoll); err != nil {
			return err
		}
	}
	if err := migrate(ctx, db.conn); err != nil {
		return err
	}
	return db.conn.QueryRow(ctx, "UPDATE tracker SET epoch = epoch + 1, life = $1 RETURNING epoch, transaction", db.life).
		Scan(&db.epoch, &db.transaction)
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
	if errors.Is(err, errHeld) {
		// By whoever took over, or by this process's last connection, of whose end the server does not know yet.
		return errors.Join(db.checkEpoch(ctx), err)
	}
	if err != nil {
		return err
	}
	last, err := db.last(ctx, conn)
	if err == nil && last != db.transaction && last != db.transaction+1 { // the next one may be of the last connection
		err = fmt.Errorf("%w: its last transaction is %d, not %d", errOther, last, db.transaction)
	}
	if err != nil {
		return errors.Join(err, conn.Close(ctx))
	}
	db.conn, db.transaction = conn, last
	return nil
}

// last is the number of the last transaction that the database has. A transaction of an earlier connection may be
// about to commit: its lock of the row is waited for.
func (db *DB) last(ctx context.Context, conn *pgx.Conn) (transaction int64, err error) {
	var epoch int64
	if err := conn.QueryRow(ctx, "SELECT epoch, transaction FROM tracker FOR UPDATE").Scan(&epoch, &transaction); err != nil {
		return 0, err
	}
	return transaction, db.compare(epoch)
}

// checkEpoch looks at the epoch without the lock.
func (db *DB) checkEpoch(ctx context.Context) error {
	var epoch int64
	if err := db.pool.QueryRow(ctx, "SELECT epoch FROM tracker").Scan(&epoch); err != nil {
		return err
	}
	return db.compare(epoch)
}

func (db *DB) compare(epoch int64) error {
	if epoch == db.epoch {
		return nil
	}
	return fmt.Errorf("%w: this one began epoch %d, it is %d", records.ErrTakenOver, db.epoch, epoch)
}

// fence makes a transaction of the writer one of its epoch, and gives it its number. The row stays locked until the
// transaction ends, so that nobody takes over amid it.
func (db *DB) fence(ctx context.Context, tx pgx.Tx, number int64) error {
	done, err := tx.Exec(ctx, "UPDATE tracker SET transaction = $1 WHERE epoch = $2", number, db.epoch)
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
