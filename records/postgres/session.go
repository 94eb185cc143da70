package postgres

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tilth-dev/tilth/records"
)

// session is a connection of the writer.
type session struct {
	*pgx.Conn
	server *pgx.ConnConfig // the server it is connected to
	// timeline is the server's, which each promotion increments; 0 if the server does not report it.
	timeline int64
	// unconfirmed is set if the server gave up waiting for its standby but reported the commit as successful.
	unconfirmed atomic.Pointer[pgconn.Notice]
}

// errReplaced reports a server that another was promoted in place of; its commits are void.
var errReplaced = errors.New("a standby was promoted in place of this server: stop it, or restart the tracker if it is the right one")

// dial connects to a server. It returns an error if the server is not writable or has been replaced.
func (db *DB) dial(ctx context.Context, server *pgx.ConnConfig) (_ *session, err error) {
	s := &session{server: server}
	cfg := server.Copy()
	cfg.OnNotice = s.onNotice
	if s.Conn, err = pgx.ConnectConfig(ctx, cfg); err != nil {
		return nil, &connectError{err}
	}
	if err = s.prepare(ctx, cfg.ConnectTimeout); err == nil && s.timeline > 0 && s.timeline < db.timeline {
		err = fmt.Errorf("%s: timeline %d, not %d: %w", hostOf(server), s.timeline, db.timeline, errReplaced)
	}
	if err != nil {
		hangUp(s.Conn)
		return nil, err
	}
	return s, nil
}

// prepare reads the server's timeline and sets the durability of commits.
func (s *session) prepare(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience) // a stopped server still accepts connections
	defer cancel()
	err := s.QueryRow(ctx, "SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint").Scan(&s.timeline)
	if codeOf(err) != "" { // for instance on services that are only partly compatible with PostgreSQL
		s.timeline, err = 0, nil
	}
	if err != nil {
		return err
	}
	// Acknowledged means on disk, whatever the database's settings are.
	_, err = s.Exec(ctx, "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'")
	return err
}

// onNotice watches for the warning about an unconfirmed commit. Its text is localized, but its routine's name is not.
func (s *session) onNotice(_ *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" {
		s.unconfirmed.Store(n)
	}
}

// confirmed returns a transient error if a commit on this connection was not confirmed by the standby that the server
// should wait for. If that standby is promoted next, the commit is lost.
func (s *session) confirmed() error {
	if n := s.unconfirmed.Load(); n != nil {
		return fmt.Errorf("the server committed without its standby: %s", n.Message)
	}
	return nil
}

// reach connects to the writable server: initially to the one with the latest timeline, later to the first suitable
// one, starting with the last one used.
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
	// Permanent errors take precedence.
	if i := slices.IndexFunc(failed, func(err error) bool { return !isTransient(err) }); i >= 0 {
		return nil, failed[i]
	}
	return nil, multiError(failed)
}

// multiError joins the errors of several attempts into one line.
type multiError []error

func (s multiError) Error() string {
	var all []string
	for _, err := range s {
		if said := err.Error(); !slices.Contains(all, said) {
			all = append(all, said)
		}
	}
	return strings.Join(all, "; ")
}

func (s multiError) Unwrap() []error { return s }

// connectError formats the driver's error as one line without repetitions. The driver reports an error for each
// attempt, with and without TLS and for each address of a host.
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

// transientClasses lists the classes of SQLSTATE (PostgreSQL's Appendix A) that are transient: the transaction may
// succeed later.
var transientClasses = []string{
	"08", // connection exception
	"25", // invalid transaction state: the server is a read-only standby
	"28", // invalid authorization: the password is being changed
	"3D", // no such database: it is being restored
	"40", // rolled back in favour of another transaction
	"53", // out of resources: disk, memory, connections
	"55", // not in prerequisite state: a lock is held
	"57", // operator intervention: shutdown, crash, starting up
	"58", // system error: I/O
}

// ownErrors are errors of this package, which are not caused by a connection.
var ownErrors = []error{
	records.ErrNotFound, records.ErrDamaged, records.ErrInvalid, records.ErrVersion, records.ErrTakenOver, records.ErrClosed, records.ErrShards,
	errOther, records.ErrInUse, pgx.ErrNoRows,
}

// isTransient reports whether an error is transient: the server is unavailable or cannot serve the request now.
func isTransient(err error) bool {
	if said, is := errors.AsType[*pgconn.PgError](err); is {
		return len(said.Code) == 5 && slices.Contains(transientClasses, said.Code[:2])
	}
	if _, is := errors.AsType[pgx.ScanArgError](err); is {
		return false
	}
	return !slices.ContainsFunc(ownErrors, func(own error) bool { return errors.Is(err, own) })
}

// wrapUnavailable wraps an error of opening in records.ErrAway if the server is down, starting or out of resources,
// rather than the address or password wrong.
func wrapUnavailable(err error) error {
	away := errors.As(err, new(net.Error)) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) // includes timeouts
	if said, is := errors.AsType[*pgconn.PgError](err); is {
		away = isTransient(err) && !slices.Contains([]string{"28", "3D"}, said.Code[:2])
	}
	if away {
		return fmt.Errorf("%w: %w", records.ErrAway, err)
	}
	return err
}

// Unavailable implements records.Remote. It returns nil for a store that has failed permanently, since waiting does
// not help; commits report the reason.
func (db *DB) Unavailable() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.failed != nil {
		return nil
	}
	return db.away
}

// OnUnavailable implements records.Remote.
func (db *DB) OnUnavailable(f func(error)) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.onAway = f
}

// OnFailed implements records.Remote.
func (db *DB) OnFailed(f func(error)) {
	db.mu.Lock()
	db.onFailed = f
	failed := db.failed
	db.mu.Unlock()
	if failed != nil {
		f(failed)
	}
}

// signal sends to a channel unless it is full.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// setUnavailable records why the server is unavailable, or nil, and notifies the observer of changes.
func (db *DB) setUnavailable(why error) {
	if why != nil {
		why = fmt.Errorf("%s: %w: %v", db.name, records.ErrAway, why)
	}
	db.mu.Lock()
	changed := (db.away == nil) != (why == nil)
	db.away = why
	tell := db.onAway
	db.mu.Unlock()
	if changed && why != nil {
		db.pool.Reset() // its connections are broken too
	}
	if changed && tell != nil {
		tell(why)
	}
}
