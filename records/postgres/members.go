package postgres

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tilth-dev/tilth/records"
)

// Members are the processes that serve some of the database's shards, of which this one gives signs of life under its
// id. It is by the server's clock, and decides about nothing but their shares and where calls are passed on to.
type Members struct {
	id      string
	servers []*pgx.ConnConfig
	at      int       // which of them to try first
	conn    *pgx.Conn // nil = there is none now
}

const (
	// memberSilence is after how long a member is told of no longer.
	memberSilence = "5 seconds"
	// memberKept is after how long its row goes.
	memberKept = "1 hour"
)

// NewMembers are those of the database at an address. The caller closes it.
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

// Meet gives a sign of life of this process, and returns all others that gave one lately. An address without a host,
// or that means all of the machine's, gets the host from which the database is reached. After an error the next call
// begins with another server: one that does not answer holds up a single call.
func (m *Members) Meet(ctx context.Context, own records.Member) (others []records.Member, err error) {
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
	var said *pgconn.PgError
	if errors.As(err, &said) && (said.Code == "42P01" || said.Code == "42703") { // there are no tables yet, or older ones
		return nil, nil
	}
	if err != nil {
		m.hangUp()
		m.goOn()
		return nil, err
	}
	return others, nil
}

// goOn has the next server be tried next.
func (m *Members) goOn() { m.at = (m.at + 1) % len(m.servers) }

// connect connects to the first server that answers, beginning with the one that did last, unless there is a
// connection.
func (m *Members) connect(ctx context.Context) (err error) {
	var failed []error
	for range m.servers {
		if m.conn != nil || len(failed) > 0 && ctx.Err() != nil {
			break
		}
		if m.conn, err = pgx.ConnectConfig(ctx, hasty(m.servers[m.at])); err != nil {
			m.conn = nil
			m.goOn()
			failed = append(failed, &connectError{err})
		}
	}
	if m.conn == nil {
		return several(failed)
	}
	return nil
}

// mostMembers bounds those that are told of.
const mostMembers = 256

func (m *Members) others(ctx context.Context, tx pgx.Tx) (others []records.Member, err error) {
	rows, err := tx.Query(ctx, "SELECT address, certificate, host FROM members WHERE id <> $1 AND seen > now() - interval '"+memberSilence+
		"' ORDER BY id LIMIT $2", []byte(m.id), mostMembers)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (records.Member, error) {
		var address, certificate, host []byte
		err := row.Scan(&address, &certificate, &host)
		return records.Member{Address: string(address), Certificate: certificate, Host: host}, err
	})
}

// reachable is an address with the host of this process as the database sees it, unless it has one of its own.
func reachable(address string, local net.Addr) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); strings.HasPrefix(address, "unix:") || err != nil || host != "" && (ip == nil || !ip.IsUnspecified()) {
		return address
	}
	if tcp, is := local.(*net.TCPAddr); is {
		return net.JoinHostPort(tcp.IP.String(), port)
	}
	return net.JoinHostPort("127.0.0.1", port) // the database is on this machine
}

// Leave says that this process is no member any more.
func (m *Members) Leave() {
	if m.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = m.conn.Exec(ctx, "DELETE FROM members WHERE id = $1", []byte(m.id)) // silence says the same, later
	m.hangUp()
}

func (m *Members) hangUp() {
	hangUp(m.conn)
	m.conn = nil
}
