package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// lookEvery is the interval at which a waiting process checks the heartbeats of the one that has the database.
	lookEvery = 500 * time.Millisecond
	// silentLooks is the number of consecutive looks without a heartbeat after which the database is taken over: at
	// least 3.5 seconds. Looks are counted instead of time, so a process that was itself stopped or could not reach
	// the server starts over.
	silentLooks = 7
	// freeLooks is the same if the lock became free in the meantime: the process has probably ended, or its writer is
	// reconnecting.
	freeLooks = 4
	// reluctantLooks is the number of looks for which a process with its share of shards leaves one to others.
	reluctantLooks = 4
	// endTimeout bounds the wait until a terminated session has released its lock.
	endTimeout = 2 * time.Second
)

// errOtherServer reports that a different server has become writable.
var errOtherServer = errors.New("another server was promoted meanwhile")

// watch is what a waiting process knows about the one that has the database.
type watch struct {
	db *DB
	// session is the connection for looks, or nil. A new session resets all observations, since the
	// server may have been unavailable to the other process as well.
	session *session
	hasty   bool // commits are asynchronous
	counted bool // there is a heartbeat table, which the first process creates
	held    bool // the lock was held at some look of this session
	pid     int32
	epoch   int64
	beats   int64 // last count; 0 if the holder sends no heartbeats
	silent  int   // consecutive looks with the same count
	left    int   // looks at which the shard was left to another process
}

// await waits until no other process has the database, and creates the connection that holds the lock. It keeps
// waiting while the server is unavailable. It returns permanent errors, and the cause of ctx.
func (db *DB) await(ctx context.Context) error {
	w := &watch{db: db}
	defer w.forget()
	for {
		free, err := w.look(ctx)
		if err == nil && free && !w.defers(ctx) {
			err = w.take(ctx)
			if err == nil {
				return nil
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			w.forget()
			if !isTransient(err) {
				return err
			}
		}
		if err := pause(ctx, nil, lookEvery); err != nil {
			return err
		}
	}
}

// look reports whether to take over the database. If there were heartbeats, a free lock on a new connection proves
// little: the server may have restarted, and the holder may be about to reconnect. Without heartbeats it does not
// wait: a live process that has not sent its first heartbeat merely loses its epoch.
func (w *watch) look(ctx context.Context) (free bool, err error) {
	if w.session == nil {
		if w.session, err = w.db.reach(ctx); err != nil {
			return false, err
		}
		*w = watch{db: w.db, session: w.session, left: w.left}
		// Settle now: takeOver would be too late to refuse the schema.
		if _, err := w.db.settle(ctx, w.session.Conn); err != nil {
			return false, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	if !w.hasty {
		// A look writes, like a heartbeat, so that a server that accepts no writes yields neither.
		if _, err := w.session.Exec(ctx, "SET synchronous_commit = off"); err != nil {
			return false, err
		}
		w.hasty = true
	}
	before := *w
	if err := w.ask(ctx); err != nil {
		return false, err
	}
	if w.epoch != before.epoch || w.beats != before.beats {
		w.silent = 0
	} else {
		w.silent++
	}
	w.held = w.held || w.pid != 0
	return w.isFree(), nil
}

// isFree reports whether the database is free to be taken over.
func (w *watch) isFree() bool {
	switch {
	case w.pid != 0:
		return w.beats > 0 && w.silent >= silentLooks
	case w.beats == 0 && (w.counted || w.held): // given back, or the new holder ended before its first heartbeat
		return true
	case w.held:
		return w.silent >= freeLooks
	}
	return w.silent >= silentLooks
}

// defers reports whether to leave a released shard to another waiting process for some looks, because this process has
// its share. A shard whose process died is never left.
func (w *watch) defers(ctx context.Context) bool {
	if w.db.reluctant == nil || w.pid != 0 || w.beats != 0 || !w.db.reluctant(ctx) {
		return false
	}
	w.left++
	return w.left <= reluctantLooks
}

// ask reads the heartbeats and the holder of the lock.
func (w *watch) ask(ctx context.Context) error {
	const holder = `coalesce((SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND (classid::bigint << 32 | objid::bigint) = $1), 0)`
	lock := lockOf(w.db.shard)
	if !w.counted {
		err := w.session.QueryRow(ctx, "SELECT to_regclass($2) IS NOT NULL, "+holder, lock, schemaName+".heartbeat").Scan(&w.counted, &w.pid)
		if err != nil || !w.counted {
			return err
		}
	}
	const beats = "UPDATE heartbeat SET looks = looks + 1 WHERE shard = $2 RETURNING beats, (SELECT epoch FROM tracker WHERE shard = $2), "
	return w.session.QueryRow(ctx, beats+holder, lock, w.db.shard).Scan(&w.beats, &w.epoch, &w.pid)
}

// take acquires the lock on a new connection to the most recently promoted server. It terminates the session that
// holds it: that process is stopped or cut off. Even if it is not, its epoch ends.
func (w *watch) take(ctx context.Context) error {
	s, err := w.db.reach(ctx)
	if err != nil {
		return err
	}
	if s.server != w.session.server || s.timeline != w.session.timeline {
		err = errOtherServer
	}
	if err == nil {
		err = w.takeOver(ctx, s)
	}
	if err != nil {
		hangUp(s.Conn)
		return err
	}
	w.db.conn = s
	return nil
}

func (w *watch) takeOver(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if w.pid != 0 {
		if _, err := s.Exec(ctx, "SELECT pg_terminate_backend($1)", w.pid); err != nil {
			return fmt.Errorf("end the session of the tracker that is silent: %w", err)
		}
	}
	for {
		held, err := tryLock(ctx, s, w.db.shard)
		if err != nil || held {
			return err
		}
		if err := pause(ctx, nil, lockPoll); err != nil {
			return err
		}
	}
}

// forget closes the session.
func (w *watch) forget() {
	if w.session != nil {
		hangUp(w.session.Conn)
		w.session = nil
	}
}

// clearHeartbeat clears the heartbeat count, so that waiting processes rely on the lock alone until the first
// heartbeat: migrations and conversions send none.
func clearHeartbeat(ctx context.Context, conn *pgx.Conn, shard int) error {
	var counted bool
	err := conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", schemaName+".heartbeat").Scan(&counted)
	if err == nil && counted {
		_, err = conn.Exec(ctx, fmt.Sprintf("SET LOCAL synchronous_commit = off; UPDATE heartbeat SET beats = 0 WHERE shard = %d", shard))
	}
	return err
}
