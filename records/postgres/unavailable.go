package postgres

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tilth-dev/tilth/records"
)

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

// isUnavailable reports whether an error of opening means that the server is down, starting or out of resources,
// rather than that the address or password is wrong.
func isUnavailable(err error) bool {
	if said, is := errors.AsType[*pgconn.PgError](err); is {
		return isTransient(err) && !slices.Contains([]string{"28", "3D"}, said.Code[:2])
	}
	return errors.As(err, new(net.Error)) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) // includes timeouts
}

// wrapUnavailable wraps a transient error of opening in records.ErrAway.
func wrapUnavailable(err error) error {
	if isUnavailable(err) {
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

// requestCheck makes the writer check the server, after a look-up failed.
func (db *DB) requestCheck() {
	select {
	case db.doubted <- struct{}{}:
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
