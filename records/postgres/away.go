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

// passing are the classes of SQLSTATE (PostgreSQL's Appendix A) of errors that pass: the same transaction may succeed
// later.
var passing = []string{
	"08", // connection exception
	"25", // invalid transaction state: the server is a standby, read-only
	"28", // invalid authorisation: somebody changes the password
	"3D", // no such database: somebody restores it
	"40", // rolled back, for another one
	"53", // out of resources: disk, memory, connections
	"55", // not in the state: a lock is held
	"57", // operator intervention: shutdown, crash, starting up
	"58", // system error: input or output
}

// ours are errors of this package, which no connection caused.
var ours = []error{
	records.ErrNotFound, records.ErrDamaged, records.ErrInvalid, records.ErrVersion, records.ErrTakenOver, records.ErrClosed, records.ErrShards,
	errOther, records.ErrInUse, pgx.ErrNoRows,
}

// passes says whether an error is of a server that is away, or cannot do now what it is asked for. Every other would
// be the same the next time.
func passes(err error) bool {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return len(said.Code) == 5 && slices.Contains(passing, said.Code[:2])
	}
	var scan pgx.ScanArgError
	if errors.As(err, &scan) {
		return false
	}
	return !slices.ContainsFunc(ours, func(own error) bool { return errors.Is(err, own) })
}

// absent says whether an error of opening is of a server that is away, starts, or has no room, rather than of an
// address or a password that is wrong.
func absent(err error) bool {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return passes(err) && !slices.Contains([]string{"28", "3D"}, said.Code[:2])
	}
	var network net.Error // also of a time that is over
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// ifAway marks an error of opening that passes by itself.
func ifAway(err error) error {
	if absent(err) {
		return fmt.Errorf("%w: %w", records.ErrAway, err)
	}
	return err
}

// Away implements records.Remote. A store that failed for good is waited for no longer: every commit tells why.
func (db *DB) Away() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.failed != nil {
		return nil
	}
	return db.away
}

// OnAway implements records.Remote.
func (db *DB) OnAway(f func(error)) {
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

// doubt has the writer look whether the server is there, since somebody did not find it.
func (db *DB) doubt() {
	select {
	case db.doubted <- struct{}{}:
	default:
	}
}

// setAway notes that the server is away, and why, or that it is back (nil). Who asked for it is told of changes.
func (db *DB) setAway(why error) {
	if why != nil {
		why = fmt.Errorf("%s: %w: %v", db.name, records.ErrAway, why)
	}
	db.mu.Lock()
	changed := (db.away == nil) != (why == nil)
	db.away = why
	tell := db.onAway
	db.mu.Unlock()
	if changed && why != nil {
		db.pool.Reset() // those connections are no better
	}
	if changed && tell != nil {
		tell(why)
	}
}
