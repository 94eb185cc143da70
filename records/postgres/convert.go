package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	"github.com/tilth-dev/tilth/records"
)

// Stopped is a database held for a conversion; see records.Target.
type Stopped struct {
	db *DB
	// epochs is the sum of the epochs of all shards.
	epochs int64
}

// OpenSource opens the database at an address for reading all rows of all shards. It locks out trackers until Close
// and starts a new epoch, so that a tracker that was cut off writes nothing; it changes nothing else. Agents and
// devices have a row per shard, of which the first shard's counts. It returns ErrLocked if a tracker has the database,
// ErrUnfinished for an unfinished copy, and ErrVersion for a schema of another version.
func OpenSource(ctx context.Context, address string, opts Options) (*Stopped, error) {
	return openStopped(ctx, address, opts, func(db *DB) error {
		s, err := schemaOf(ctx, db.conn.Conn)
		if err == nil {
			err = db.checkSame(s)
		}
		if err != nil {
			return err
		}
		return checkConverted(ctx, db.conn.Conn)
	})
}

// OpenTarget opens the database at an address for copying rows into it, creating its tables if necessary. The result
// has one shard; trackers may divide it later. It locks out other processes until Close. Errors are as for OpenSource.
func OpenTarget(ctx context.Context, address string, opts Options) (*Stopped, error) {
	return openStopped(ctx, address, opts, func(db *DB) error {
		err := db.migrate(ctx)
		if err == nil {
			err = db.checkSame(db.schema)
		}
		if err != nil {
			return err
		}
		return checkOneShard(ctx, db.conn.Conn)
	})
}

func openStopped(ctx context.Context, address string, opts Options, prepare func(*DB) error) (*Stopped, error) {
	servers, err := parse(address)
	if err != nil {
		return nil, err
	}
	db := &DB{name: nameOf(servers), migrations: opts.known(), timeout: cmp.Or(opts.TransactionTimeout, defaultTransactionTimeout)}
	for _, s := range servers {
		db.servers = append(db.servers, s.ConnConfig)
	}
	s := &Stopped{db: db}
	if err = db.acquire(ctx, cmp.Or(opts.LockTimeout, defaultLockTimeout)); err == nil {
		err = clearHeartbeat(ctx, db.conn.Conn, 0)
	}
	if err == nil {
		err = prepare(db)
	}
	if err == nil {
		err = db.beginEpoch(ctx, "")
	}
	if err == nil {
		err = s.takeShards(ctx, cmp.Or(opts.LockTimeout, defaultLockTimeout))
	}
	if errors.Is(err, records.ErrLocked) {
		err = fmt.Errorf("%w: stop the tracker first", err)
	}
	if err != nil {
		db.disconnect()
		return nil, fmt.Errorf("%s: %w", db.name, err)
	}
	return s, nil
}

// takeShards locks all other shards and starts a new epoch of each. It returns ErrLocked if a tracker has one.
func (s *Stopped) takeShards(ctx context.Context, patience time.Duration) error {
	conn := s.db.conn
	var shards int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM tracker").Scan(&shards); err != nil {
		return err
	}
	begin := time.Now()
	for shard := 1; shard < shards; {
		held, err := tryLock(ctx, conn, shard)
		switch {
		case err != nil:
			return err
		case held:
			if err := clearHeartbeat(ctx, conn.Conn, shard); err != nil {
				return err
			}
			shard++
		case time.Since(begin) >= patience:
			return records.ErrLocked
		default:
			if err := pause(ctx, nil, lockPoll); err != nil {
				return err
			}
		}
	}
	if _, err := conn.Exec(ctx, "UPDATE tracker SET epoch = epoch + 1 WHERE shard > 0"); err != nil {
		return err
	}
	return conn.QueryRow(ctx, "SELECT sum(epoch)::bigint FROM tracker").Scan(&s.epochs)
}

// checkSame refuses any schema other than this version's, even a newer one that trackers of this version could use: a
// conversion would omit what it does not know.
func (db *DB) checkSame(s schema) error {
	own := len(db.migrations)
	switch {
	case s.version == 0:
		return errors.New("it has no records of Tilth: name the database of a tracker")
	case s.version < own:
		return fmt.Errorf("%w, an earlier one: start a tracker of this version on it, stop that, and convert again", records.ErrVersion)
	case s.version > own:
		return fmt.Errorf("%w, a later one: schema %d, this one copies schema %d: convert with the version of its trackers", records.ErrVersion, s.version, own)
	}
	return nil
}

// conversion returns the database's mark, or nil.
func conversion(ctx context.Context, conn *pgx.Conn) (*storev1.Conversion, error) {
	var message []byte
	if err := conn.QueryRow(ctx, "SELECT conversion FROM tracker WHERE shard = 0").Scan(&message); err != nil || len(message) == 0 {
		return nil, err
	}
	mark := &storev1.Conversion{}
	return mark, decode(message, mark)
}

// checkConverted refuses a database with an unfinished conversion.
func checkConverted(ctx context.Context, conn *pgx.Conn) error {
	mark, err := conversion(ctx, conn)
	if err == nil && mark != nil && !mark.GetFinished() {
		err = fmt.Errorf("%w: it has only a part of %s: run 'tilth tracker convert' again, or %s", records.ErrUnfinished, mark.GetSource(), emptyHint)
	}
	return err
}

// emptyHint describes to users how to empty the database.
const emptyHint = "empty it (DROP SCHEMA " + schemaName + " CASCADE)"

// Name implements records.Stopped.
func (s *Stopped) Name() string { return s.db.name }

// EmptyHint implements records.Target.
func (s *Stopped) EmptyHint() string { return emptyHint }

// Close implements records.Stopped.
func (s *Stopped) Close() error {
	s.db.disconnect()
	return nil
}

// explain adds the name of the database to an error.
func (s *Stopped) explain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("%s: %w", s.db.name, err)
}

// State implements records.Stopped. It combines each shard's generation, which changes when a tracker or a conversion
// opens it, with the number of its last transaction.
func (s *Stopped) State(ctx context.Context) (state string, err error) {
	var epochs int64
	err = s.db.conn.QueryRow(ctx, "SELECT string_agg(life || ' ' || transaction, ' ' ORDER BY shard), sum(epoch)::bigint FROM tracker").Scan(&state, &epochs)
	if err == nil && epochs != s.epochs {
		err = fmt.Errorf("%w: its epochs sum up to %d, not %d", records.ErrTakenOver, epochs, s.epochs)
	}
	return "postgres " + state, s.explain(ctx, err)
}

// Conversion implements records.Target.
func (s *Stopped) Conversion(ctx context.Context) (*storev1.Conversion, error) {
	mark, err := conversion(ctx, s.db.conn.Conn)
	return mark, s.explain(ctx, err)
}

// Put implements records.Target.
func (s *Stopped) Put(ctx context.Context, kind records.RowKind, rows []records.Row, mark *storev1.Conversion) error {
	message, err := proto.Marshal(mark)
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, s.db.conn, func(tx pgx.Tx) error {
		done, err := tx.Exec(ctx, `UPDATE tracker SET transaction = transaction + 1, life = CASE conversion WHEN '' THEN $3 ELSE life END, conversion = $1
			WHERE epoch = $2`, message, s.db.epoch, records.NewGeneration())
		if err == nil && done.RowsAffected() != 1 {
			err = fmt.Errorf("%w: this one began epoch %d, which is over", records.ErrTakenOver, s.db.epoch)
		}
		if err != nil || len(rows) == 0 {
			return err
		}
		return putRows(ctx, tx, kind, rows)
	})
	if err == nil {
		err = s.db.conn.confirmed()
	}
	return s.explain(ctx, err)
}
