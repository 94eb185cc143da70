package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// beatEvery is how often the process that has the database says that it lives.
	beatEvery = time.Second
	// beatTimeout bounds one heartbeat, and one look at it: who needs longer for either learns nothing of the other.
	beatTimeout = 2 * time.Second
)

// heart is the goroutine that adds to the count of heartbeats, on a connection of its own: a transaction of the writer
// may take long, and the process lives meanwhile.
type heart struct {
	db     *DB
	server *pgx.ConnConfig
	conn   *pgx.Conn // nil = there is none now
}

// beat does so until the store is closed or has failed. Another process that began an epoch is found here first.
func (db *DB) beat() {
	defer close(db.silent)
	h := &heart{db: db}
	defer h.hangUp()
	for db.broken() == nil {
		if err := h.once(); err != nil {
			h.hangUp()
			if !passes(err) {
				_ = db.fail(err)
			}
		}
		if pause(context.Background(), db.ending, beatEvery) != nil {
			h.farewell()
			return
		}
	}
}

// beatSQL adds to the count, in the epoch that is in force.
const beatSQL = "UPDATE heartbeat SET beats = beats + 1 WHERE shard = $2 AND (SELECT epoch FROM tracker WHERE shard = $2) = $1"

// once adds to the count, on the server that is written now.
func (h *heart) once() error {
	ctx, cancel := context.WithTimeout(context.Background(), beatTimeout)
	defer cancel()
	if written := h.db.written.Load(); h.conn == nil || h.server != written {
		h.hangUp()
		conn, err := pgx.ConnectConfig(ctx, hasty(written))
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

// farewell says that no heartbeat is to be waited for, if there is a connection. Whoever waits then goes by the lock.
func (h *heart) farewell() {
	if h.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), beatTimeout)
	defer cancel()
	const none = "UPDATE heartbeat SET beats = 0 WHERE shard = $2 AND (SELECT epoch FROM tracker WHERE shard = $2) = $1"
	_, _ = h.conn.Exec(ctx, none, h.db.epoch, h.db.shard) // silence says the same, later
}

func (h *heart) hangUp() {
	hangUp(h.conn)
	h.conn = nil
}

// hasty are the settings of a connection whose commits wait for no disk and no standby: a count that a crash sets back
// is as good.
func hasty(server *pgx.ConnConfig) *pgx.ConnConfig {
	cfg := server.Copy()
	cfg.RuntimeParams["synchronous_commit"] = "off"
	return cfg
}

// hangUp closes a connection, if there is one. It is given up, however that ends.
func hangUp(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), beatTimeout)
	defer cancel()
	_ = conn.Close(ctx)
}
