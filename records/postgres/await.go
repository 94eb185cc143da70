package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// lookEvery is how often a process that waits for the database looks at the heartbeats of the one that has it.
	lookEvery = 500 * time.Millisecond
	// silentLooks is after how many looks in a row without a heartbeat the database is taken over: 3.5 seconds at
	// least. Looks are counted rather than time, so that a process that stood still itself, or did not reach the
	// server, begins anew.
	silentLooks = 7
	// freeLooks is the same where the lock was given up meanwhile: the process has probably ended, or its writer is
	// about to connect anew.
	freeLooks = 4
	// reluctantLooks are for how many looks a process that has its share of the shards leaves one to others.
	reluctantLooks = 4
	// endTimeout bounds the wait until a session that is ended has given up its lock.
	endTimeout = 2 * time.Second
)

// errOtherServer is when another server is the one that is written.
var errOtherServer = errors.New("another server was promoted meanwhile")

// watch is what a process that waits has seen of the one that has the database.
type watch struct {
	db *DB
	// session is the one that it looks on; nil = there is none now, and what was seen before counts no more: the
	// server may have been away, also for the process that has the database.
	session *session
	hasty   bool // its commits wait for nothing
	// counted says that there is a table of heartbeats, and sharded that it has a row for each shard; a database of
	// an earlier version may lack either.
	counted, sharded bool
	held             bool // the lock was held, in this session
	pid              int32
	epoch            int64
	beats            int64 // as they were counted last; 0 = who has the lock counts none
	silent           int   // looks in a row that found the same count
	left             int   // looks at which it was left to another process
}

// await waits until no other process has the database, and makes the connection that holds the lock. While the server
// is away it waits, too. Errors are those that do not pass, and the cause of the end of ctx.
func (db *DB) await(ctx context.Context) error {
	w := &watch{db: db}
	defer w.forget()
	for {
		free, err := w.look(ctx)
		if err == nil && free && !w.leaves(ctx) {
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
			if !passes(err) {
				return err
			}
		}
		if err := pause(ctx, nil, lookEvery); err != nil {
			return err
		}
	}
}

// look says whether the database is to be taken over. A lock that is free on a new connection says little where there
// were heartbeats: the server may have started anew, and who has the database is about to come back. Where there were
// none, nobody is awaited: who lives and has not come to its first loses its epoch, and no more than that.
func (w *watch) look(ctx context.Context) (free bool, err error) {
	if w.session == nil {
		if w.session, err = w.db.reach(ctx); err != nil {
			return false, err
		}
		*w = watch{db: w.db, session: w.session, left: w.left}
		if _, err := w.db.settle(ctx, w.session.Conn); err != nil { // or its takeover does, or comes too late to refuse
			return false, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	if !w.hasty {
		// A look writes, as a heartbeat does, so that a server that takes no writes now takes neither.
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
	return w.over(), nil
}

// over says whether nobody has the database any more.
func (w *watch) over() bool {
	switch {
	case w.pid != 0:
		return w.beats > 0 && w.silent >= silentLooks
	case w.beats == 0 && (w.counted || w.held): // it was given back, or whoever began its epoch ended before the first heartbeat
		return true
	case w.held:
		return w.silent >= freeLooks
	}
	return w.silent >= silentLooks
}

// leaves says whether a shard that was given back is left to another process that waits, for some looks: this one has
// its share. One whose process is gone is left to nobody.
func (w *watch) leaves(ctx context.Context) bool {
	if w.db.reluctant == nil || w.pid != 0 || w.beats != 0 || !w.db.reluctant(ctx) {
		return false
	}
	w.left++
	return w.left <= reluctantLooks
}

// ask asks for the heartbeats, and for who holds the lock.
func (w *watch) ask(ctx context.Context) error {
	const holder = `coalesce((SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND (classid::bigint << 32 | objid::bigint) = $1), 0)`
	lock := lockOf(w.db.shard)
	if !w.sharded { // not yet, as far as is known
		err := w.session.QueryRow(ctx, "SELECT to_regclass($2) IS NOT NULL, "+shardedSQL+", "+holder, lock, schemaName+".heartbeat").
			Scan(&w.counted, &w.sharded, &w.pid)
		if err != nil || !w.counted {
			return err
		}
	}
	if !w.sharded {
		const beats = "UPDATE heartbeat SET looks = looks + 1 RETURNING beats, (SELECT epoch FROM tracker), "
		return w.session.QueryRow(ctx, beats+holder, lock).Scan(&w.beats, &w.epoch, &w.pid)
	}
	const beats = "UPDATE heartbeat SET looks = looks + 1 WHERE shard = $2 RETURNING beats, (SELECT epoch FROM tracker WHERE shard = $2), "
	return w.session.QueryRow(ctx, beats+holder, lock, w.db.shard).Scan(&w.beats, &w.epoch, &w.pid)
}

// take takes the lock, on a new connection to the server that was promoted last, from whoever holds it. The session
// that held it is ended: its process is stopped or cut off. If it is neither, its epoch is over all the same.
func (w *watch) take(ctx context.Context) error {
	s, err := w.db.reach(ctx)
	if err != nil {
		return err
	}
	if s.server != w.session.server || s.timeline != w.session.timeline {
		err = errOtherServer
	}
	if err == nil {
		err = w.seize(ctx, s)
	}
	if err != nil {
		hangUp(s.Conn)
		return err
	}
	w.db.conn = s
	return nil
}

func (w *watch) seize(ctx context.Context, s *session) error {
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

// forget gives up the session.
func (w *watch) forget() {
	if w.session != nil {
		hangUp(w.session.Conn)
		w.session = nil
	}
}

// quieten has who waits go by the lock alone until the first heartbeat: a migration or a conversion counts none.
func quieten(ctx context.Context, conn *pgx.Conn, shard int) error {
	var counted, sharded bool
	err := conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL, "+shardedSQL, schemaName+".heartbeat").Scan(&counted, &sharded)
	of := ""
	if sharded {
		of = fmt.Sprintf(" WHERE shard = %d", shard)
	}
	if err == nil && counted {
		_, err = conn.Exec(ctx, "SET LOCAL synchronous_commit = off; UPDATE heartbeat SET beats = 0"+of)
	}
	return err
}
