package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Members counts the processes that serve some of the database's shards, with this one, which gives a sign of life
// under its id. It is by the server's clock, and decides about nothing but their shares.
type Members struct {
	id      string
	servers []*pgx.ConnConfig
	conn    *pgx.Conn // nil = there is none now
}

const (
	// memberSilence is after how long a member is counted no longer.
	memberSilence = "5 seconds"
	// memberKept is after how long its row goes.
	memberKept = "1 hour"
)

// NewMembers counts those of the database at an address. The caller closes it.
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

// Count gives a sign of life, and counts the members.
func (m *Members) Count(ctx context.Context) (count int, err error) {
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	if m.conn == nil {
		var failed []error
		for _, server := range m.servers {
			if m.conn, err = pgx.ConnectConfig(ctx, hasty(server)); err == nil {
				break
			}
			failed = append(failed, &connectError{err})
		}
		if m.conn == nil {
			return 0, several(failed)
		}
	}
	err = pgx.BeginFunc(ctx, m.conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO members (id, seen) VALUES ($1, now()) ON CONFLICT (id) DO UPDATE SET seen = excluded.seen", []byte(m.id))
		if err == nil {
			err = tx.QueryRow(ctx, "SELECT count(*) FROM members WHERE seen > now() - interval '"+memberSilence+"'").Scan(&count)
		}
		if err == nil {
			_, err = tx.Exec(ctx, "DELETE FROM members WHERE seen < now() - interval '"+memberKept+"'")
		}
		return err
	})
	var said *pgconn.PgError
	if errors.As(err, &said) && said.Code == "42P01" { // there are no tables yet
		return 1, nil
	}
	if err != nil {
		m.hangUp()
	}
	return count, err
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
