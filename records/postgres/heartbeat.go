package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// beatEvery is the interval between heartbeats.
	beatEvery = time.Second
	// beatTimeout bounds one heartbeat and one look at them. A process that takes longer learns nothing from it.
	beatTimeout = 2 * time.Second
)

// heartbeat sends heartbeats on a connection of its own, since a long transaction of the writer must not suppress
// them.
type heartbeat struct {
	db     *DB
	server *pgx.ConnConfig
	conn   *pgx.Conn // nil without a connection
}

// beat sends heartbeats until the store is closed or has failed. It is also the first to notice that another process
// has started an epoch.
func (db *DB) beat() {
	defer close(db.silent)
	h := &heartbeat{db: db}
	defer h.hangUp()
	for db.broken() == nil {
		if err := h.once(); err != nil {
			h.hangUp()
			if !isTransient(err) {
				_ = db.fail(err)
			}
		}
		if pause(context.Background(), db.ending, beatEvery) != nil {
			h.clear()
			return
		}
	}
}

// beatSQL increments the count if the epoch is still in force.
const beatSQL = "UPDATE heartbeat SET beats = beats + 1 WHERE shard = $2 AND (SELECT epoch FROM tracker WHERE shard = $2) = $1"

// once sends one heartbeat to the current writable server.
func (h *heartbeat) once() error {
	ctx, cancel := context.WithTimeout(context.Background(), beatTimeout)
	defer cancel()
	if written := h.db.written.Load(); h.conn == nil || h.server != written {
		h.hangUp()
		conn, err := pgx.ConnectConfig(ctx, asyncCommits(written))
		if err != nil {
			return &connectError{err}
		}
		h.conn, h.server = conn, written
	}
	done, err := h.conn.Exec(ctx, beatSQL, h.db.epoch, h.db.shard)
	if err != nil || done.RowsAffected() == 1 {
		return err
	}
	return h.db.checkEpoch(ctx, h.conn)
}

// clear clears the count, so that waiting processes rely on the lock alone.
func (h *heartbeat) clear() {
	if h.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), beatTimeout)
	defer cancel()
	const none = "UPDATE heartbeat SET beats = 0 WHERE shard = $2 AND (SELECT epoch FROM tracker WHERE shard = $2) = $1"
	_, _ = h.conn.Exec(ctx, none, h.db.epoch, h.db.shard) // without it, silence has the same effect later
}

func (h *heartbeat) hangUp() {
	hangUp(h.conn)
	h.conn = nil
}

// asyncCommits returns a configuration with asynchronous commits. Losing counts in a crash does no harm.
func asyncCommits(server *pgx.ConnConfig) *pgx.ConnConfig {
	cfg := server.Copy()
	cfg.RuntimeParams["synchronous_commit"] = "off"
	return cfg
}

// hangUp closes a connection if there is one, ignoring errors.
func hangUp(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), beatTimeout)
	defer cancel()
	_ = conn.Close(ctx)
}
