package postgres

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tilth-dev/tilth/records"
)

// Members is the set of processes that serve shards of the database. This process registers in it and sends heartbeats
// under its id. Times are the server's. Membership only affects how shards are shared and where calls are forwarded.
type Members struct {
	id      string
	servers []*pgx.ConnConfig
	at      int       // server to try first
	conn    *pgx.Conn // nil without a connection
}

const (
	// memberSilence is how long after its last heartbeat a member is omitted.
	memberSilence = "5 seconds"
	// memberKept is how long after its last heartbeat a member's row is deleted.
	memberKept = "1 hour"
)

// NewMembers returns the members of the database at an address. The caller must call Leave.
func NewMembers(address, id string) (*Members, error) {
	servers, err := parse(address)
	if err != nil {
		return nil, err
	}
	m := &Members{id: id}
	for _, s := range servers {
		m.servers = append(m.servers, s.ConnConfig)
	}
	return m, nil
}

// Heartbeat sends a heartbeat and returns all other members with recent ones. An address without a specific host gets
// the host from which this process reaches the database. After an error the next call starts with another server, so
// an unresponsive one delays a single call only.
func (m *Members) Heartbeat(ctx context.Context, own records.Member) (others []records.Member, err error) {
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	if err := m.connect(ctx); err != nil {
		return nil, err
	}
	own.Address = reachable(own.Address, m.conn.PgConn().Conn().LocalAddr())
	err = pgx.BeginFunc(ctx, m.conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO members (id, seen, address, certificate, host) VALUES ($1, now(), $2, $3, $4)
			ON CONFLICT (id) DO UPDATE SET seen = excluded.seen, address = excluded.address, certificate = excluded.certificate,
				host = excluded.host`,
			[]byte(m.id), []byte(own.Address), append([]byte{}, own.Certificate...), append([]byte{}, own.Host...))
		if err == nil {
			others, err = m.others(ctx, tx)
		}
		if err == nil {
			_, err = tx.Exec(ctx, "DELETE FROM members WHERE seen < now() - interval '"+memberKept+"'")
		}
		return err
	})
	if codeOf(err) == "42P01" { // the tables do not exist yet
		return nil, nil
	}
	if err != nil {
		m.hangUp()
		m.nextServer()
		return nil, err
	}
	return others, nil
}

// nextServer makes the next server the first to try.
func (m *Members) nextServer() { m.at = (m.at + 1) % len(m.servers) }

// connect connects to the first server that answers, starting with the last one used, unless connected.
func (m *Members) connect(ctx context.Context) (err error) {
	var failed []error
	for range m.servers {
		if m.conn != nil || len(failed) > 0 && ctx.Err() != nil {
			break
		}
		if m.conn, err = pgx.ConnectConfig(ctx, asyncCommits(m.servers[m.at])); err != nil {
			m.conn = nil
			m.nextServer()
			failed = append(failed, &connectError{err})
		}
	}
	if m.conn == nil {
		return multiError(failed)
	}
	return nil
}

// maxMembers bounds the returned members.
const maxMembers = 256

func (m *Members) others(ctx context.Context, tx pgx.Tx) (others []records.Member, err error) {
	rows, err := tx.Query(ctx, "SELECT address, certificate, host FROM members WHERE id <> $1 AND seen > now() - interval '"+memberSilence+
		"' ORDER BY id LIMIT $2", []byte(m.id), maxMembers)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (records.Member, error) {
		var address, certificate, host []byte
		err := row.Scan(&address, &certificate, &host)
		return records.Member{Address: string(address), Certificate: certificate, Host: host}, err
	})
}

// reachable returns address with the local host of the database connection, unless it has a specific host.
func reachable(address string, local net.Addr) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); strings.HasPrefix(address, "unix:") || err != nil || host != "" && (ip == nil || !ip.IsUnspecified()) {
		return address
	}
	if tcp, is := local.(*net.TCPAddr); is {
		return net.JoinHostPort(tcp.IP.String(), port)
	}
	return net.JoinHostPort("127.0.0.1", port) // the database is local
}

// Leave removes this process from the members and closes the connection.
func (m *Members) Leave() {
	if m.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = m.conn.Exec(ctx, "DELETE FROM members WHERE id = $1", []byte(m.id)) // silence has the same effect later
	m.hangUp()
}

func (m *Members) hangUp() {
	hangUp(m.conn)
	m.conn = nil
}

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
