package postgres

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// session is a connection of the writer.
type session struct {
	*pgx.Conn
	server *pgx.ConnConfig // of the server that it is to
	// timeline is that of the server, one more after each promotion; 0 = the server does not say.
	timeline int64
	// unconfirmed is set when the server gave up waiting for its standby, and reports the commit as done all the same.
	unconfirmed atomic.Pointer[pgconn.Notice]
}

// errReplaced is of a server in whose place another was promoted: whatever it commits counts no more.
var errReplaced = errors.New("a standby was promoted in place of this server: stop it, or restart the tracker if it is the right one")

// dial connects to a server, if that takes writes and is not one that was replaced.
func (db *DB) dial(ctx context.Context, server *pgx.ConnConfig) (_ *session, err error) {
	s := &session{server: server}
	cfg := server.Copy()
	cfg.OnNotice = s.hear
	if s.Conn, err = pgx.ConnectConfig(ctx, cfg); err != nil {
		return nil, &connectError{err}
	}
	if err = s.prepare(ctx); err == nil && s.timeline > 0 && s.timeline < db.timeline {
		err = fmt.Errorf("%s: timeline %d, not %d: %w", hostOf(server), s.timeline, db.timeline, errReplaced)
	}
	if err != nil {
		hangUp(s.Conn)
		return nil, err
	}
	return s, nil
}

// prepare asks for the server's timeline, and sets what commits are to wait for.
func (s *session) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout) // a server that stands still takes connections
	defer cancel()
	err := s.QueryRow(ctx, "SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint").Scan(&s.timeline)
	var said *pgconn.PgError
	if errors.As(err, &said) { // such as a service that is compatible with PostgreSQL, up to a point
		s.timeline, err = 0, nil
	}
	if err != nil {
		return err
	}
	// Acknowledged means on disk, whatever the database's settings are.
	_, err = s.Exec(ctx, "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'")
	return err
}

// hear looks for the one warning that counts. Its words are in the server's language, but not its routine's name.
func (s *session) hear(_ *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" {
		s.unconfirmed.Store(n)
	}
}

// confirmed is an error when something was committed on this connection that no standby has confirmed, though the
// server is to wait for one: where that standby is promoted next, the commit is gone. The error passes.
func (s *session) confirmed() error {
	if n := s.unconfirmed.Load(); n != nil {
		return fmt.Errorf("the server committed without its standby: %s", n.Message)
	}
	return nil
}

// reach connects to the server that is written: while nothing is known of it, to the one with the latest timeline,
// later to the first that will do, beginning with the one that did last.
func (db *DB) reach(ctx context.Context) (*session, error) {
	var best *session
	var failed []error
	for i := range db.servers {
		at := (db.at + i) % len(db.servers)
		s, err := db.dial(ctx, db.servers[at])
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if db.epoch > 0 {
			db.at = at
			return s, nil
		}
		if best == nil || s.timeline > best.timeline {
			best, s = s, best
			db.at = at
		}
		if s != nil {
			hangUp(s.Conn)
		}
	}
	if best != nil {
		return best, nil
	}
	// What no wait would change comes first.
	if i := slices.IndexFunc(failed, func(err error) bool { return !passes(err) }); i >= 0 {
		return nil, failed[i]
	}
	return nil, several(failed)
}

// several are errors of one attempt each, in a line.
type several []error

func (s several) Error() string {
	var all []string
	for _, err := range s {
		if said := err.Error(); !slices.Contains(all, said) {
			all = append(all, said)
		}
	}
	return strings.Join(all, "; ")
}

func (s several) Unwrap() []error { return s }

// connectError is the driver's error in a line: it has one for each try, with and without TLS and for each of a host's
// addresses, and may say the same of all.
type connectError struct{ cause error }

func (e *connectError) Error() string {
	var parts []string
	text := e.cause.Error()
	if of, is := errors.AsType[*pgconn.ConnectError](e.cause); is {
		text = of.Unwrap().Error()
	}
	for part := range strings.Lines(text) {
		if part = strings.TrimSpace(part); !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	text = strings.Join(parts, "; ")
	if _, is := errors.AsType[x509.UnknownAuthorityError](e.cause); is {
		text += ": name its authority's certificate with PGSSLROOTCERT"
	}
	return text
}

func (e *connectError) Unwrap() error { return e.cause }
