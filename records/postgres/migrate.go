package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tilth-dev/tilth/records"
)

const (
	// minServer is the oldest supported version of PostgreSQL, in the server's notation.
	minServer = 130000
	// migrationLock is the key of the lock for changing the schema. Of several processes that start at once, one
	// migrates and the others find it done.
	migrationLock = 2<<56 | advisoryLock
	// lockWait bounds the wait of a migration for a table in use. Other statements queue behind it, including
	// heartbeats, so it must be a fraction of beatTimeout.
	lockWait = "200ms"
	// longestStatement bounds each statement of a migration while other trackers serve, since it locks a table.
	longestStatement = "1s"
	// longestIdle bounds how long a process stopped during a migration blocks its tables.
	longestIdle = "2s"
	// firstTableRetry and longestTableRetry bound the delay between attempts to lock the tables.
	firstTableRetry, longestTableRetry = 250 * time.Millisecond, 4 * time.Second
	// tableTimeout is the time after which a migration that cannot lock its tables is reported.
	tableTimeout = time.Minute
)

// schema is the state of a database's schema.
type schema struct {
	version  int // of the last migration; 0 if there was none
	usableBy int // oldest version whose trackers may use it
}

// schemaOf reads the schema of a database.
func schemaOf(ctx context.Context, conn *pgx.Conn) (s schema, err error) {
	var there bool
	err = conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", schemaName+".migrations").Scan(&there)
	if err == nil && there {
		err = conn.QueryRow(ctx, "SELECT coalesce(max(version), 0), coalesce(max(usable_by), 0) FROM migrations").Scan(&s.version, &s.usableBy)
	}
	return s, err
}

// mayUse returns ErrVersion if the schema is not usable by this version.
func (db *DB) mayUse(s schema) error {
	own := len(db.migrations)
	if s.usableBy <= own {
		return nil
	}
	return fmt.Errorf("%w: schema %d is for trackers of schema %d or later, this one is of schema %d: start a later version of Tilth in its place",
		records.ErrVersion, s.version, s.usableBy, own)
}

// Schema implements records.Versioned.
func (db *DB) Schema() (version, own int) { return db.schema.version, len(db.migrations) }

// migrate brings the schema to this version, on the connection that holds the lock, or accepts a newer one that this
// version may use. It returns ErrVersion if the schema is not usable, or if the migration would make it unusable for
// other active trackers.
func (db *DB) migrate(ctx context.Context) error {
	err := limited(ctx, db.timeout, func(ctx context.Context) (err error) {
		db.schema, err = db.prepareSchema(ctx)
		return err
	})
	if err != nil || db.schema.version >= len(db.migrations) {
		return err
	}
	db.schema, err = db.migrateOn(ctx, db.conn.Conn)
	return err
}

// prepareSchema creates the schema if necessary and returns its state.
func (db *DB) prepareSchema(ctx context.Context) (s schema, err error) {
	conn := db.conn.Conn
	var server int
	if err := conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int").Scan(&server); err != nil {
		return s, err
	}
	if server < minServer {
		return s, fmt.Errorf("the server is PostgreSQL %d: want 13 or later", server/10000)
	}
	_, err = conn.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+schemaName+`;
		CREATE TABLE IF NOT EXISTS migrations (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), usable_by integer NOT NULL)`)
	if err != nil {
		return s, fmt.Errorf("prepare the schema: %w", err)
	}
	if s, err = schemaOf(ctx, conn); err == nil {
		err = db.mayUse(s)
	}
	return s, err
}

// settle brings the schema of a database in use to this version, if other trackers can keep using it. ready is false
// if that requires a process that has all shards. It returns ErrVersion if the schema is not usable by this version.
func (db *DB) settle(ctx context.Context, conn *pgx.Conn) (ready bool, err error) {
	asking, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	s, err := schemaOf(asking, conn)
	if err == nil {
		err = db.mayUse(s)
	}
	if err != nil || s.version >= len(db.migrations) {
		return err == nil, err
	}
	if slices.ContainsFunc(db.migrations[s.version:], func(m migration) bool { return m.usableBy > s.version }) {
		return false, nil
	}
	_, err = db.migrateOn(ctx, conn)
	return err == nil, err
}

// migrateOn applies the missing migrations on a connection and returns the resulting schema.
func (db *DB) migrateOn(ctx context.Context, conn *pgx.Conn) (s schema, err error) {
	err = limited(ctx, changeTimeout, func(ctx context.Context) error {
		if err := awaitMigrations(ctx, conn); err != nil {
			return err
		}
		defer endMigrations(conn)
		s, err = schemaOf(ctx, conn)
		for err == nil && s.version < len(db.migrations) {
			if err = db.migrateFrom(ctx, conn, s.version); err == nil {
				s, err = schemaOf(ctx, conn)
			}
		}
		if err == nil {
			err = db.mayUse(s)
		}
		return err
	})
	return s, err
}

// awaitMigrations waits for the migration lock.
func awaitMigrations(ctx context.Context, conn *pgx.Conn) error {
	for {
		var held bool
		if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", int64(migrationLock)).Scan(&held); err != nil || held {
			return err
		}
		if err := pause(ctx, nil, lockPoll); err != nil {
			return err
		}
	}
}

// endMigrations releases the migration lock. A broken connection has released it already.
func endMigrations(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), beatTimeout)
	defer cancel()
	_, _ = conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", int64(migrationLock))
}

// migrateFrom applies the migration that follows a version. While its tables are in use, it retries rather than block
// others that queue behind it. It returns ErrInUse if it never gets them.
func (db *DB) migrateFrom(ctx context.Context, conn *pgx.Conn, version int) error {
	begin := time.Now()
	for wait := firstTableRetry; ; wait = min(2*wait, longestTableRetry) {
		err := db.tryMigration(ctx, conn, version)
		switch {
		case err == nil:
			return nil
		case isInUse(err) && time.Since(begin) >= tableTimeout:
			return fmt.Errorf("make the schema one of version %d: %w: %v", version+1, records.ErrInUse, err)
		case codeOf(err) == "57014": // statement aborted because it blocked others for too long
			return fmt.Errorf("make the schema one of version %d: %w: it takes longer than %s, in which the other trackers would wait: stop them, and start one of this version alone",
				version+1, records.ErrVersion, longestStatement)
		case !isInUse(err):
			return fmt.Errorf("make the schema one of version %d: %w", version+1, err)
		}
		if err := pause(ctx, nil, wait/2+rand.N(wait)); err != nil {
			return err
		}
	}
}

// isInUse reports whether a migration could not lock a table in time.
func isInUse(err error) bool {
	code := codeOf(err)
	return code == "55P03" || code == "40P01" // lock not available; deadlock detected
}

// codeOf returns the SQLSTATE of a server error, or "".
func codeOf(err error) string {
	if said, is := errors.AsType[*pgconn.PgError](err); is {
		return said.Code
	}
	return ""
}

// tryMigration makes one attempt at a migration.
func (db *DB) tryMigration(ctx context.Context, conn *pgx.Conn, version int) error {
	m := db.migrations[version]
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		limits := "SET LOCAL lock_timeout = '" + lockWait + "'; SET LOCAL idle_in_transaction_session_timeout = '" + longestIdle + "'"
		err := db.haveAllShards(ctx, tx, version, m.usableBy)
		if m.usableBy <= version && errors.Is(err, records.ErrVersion) { // others are active and may continue
			limits += "; SET LOCAL statement_timeout = '" + longestStatement + "'"
			err = nil
		}
		for _, sql := range []string{limits, m.sql} {
			if err == nil {
				_, err = tx.Exec(ctx, sql)
			}
		}
		if err == nil {
			_, err = tx.Exec(ctx, "INSERT INTO migrations (version, usable_by) VALUES ($1, $2)", version+1, m.usableBy)
		}
		if err == nil { // the commit may wait for a standby
			_, err = tx.Exec(ctx, "SET LOCAL statement_timeout = 0")
		}
		return err
	})
}

// haveAllShards locks all shards for a transaction that changes the schema, so that no tracker can return in the
// meantime. It returns ErrVersion if another one has a shard.
func (db *DB) haveAllShards(ctx context.Context, tx pgx.Tx, version, usableBy int) error {
	shards := 1
	if version > 0 {
		if err := tx.QueryRow(ctx, "SELECT count(*) FROM tracker").Scan(&shards); err != nil {
			return err
		}
	}
	for shard := range shards {
		var held bool
		if err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1)", lockOf(shard)).Scan(&held); err != nil {
			return err
		}
		if !held {
			return fmt.Errorf("%w: another tracker has shard %d, and schema %d becomes one for trackers of schema %d or later: stop the others first, or bring them to a version between",
				records.ErrVersion, shard, version, usableBy)
		}
	}
	if version == 0 || usableBy <= version {
		return nil
	}
	// A free lock proves little: after a server restart, a tracker may be about to take it again.
	_, err := tx.Exec(ctx, "UPDATE tracker SET epoch = epoch + 1 WHERE shard <> $1", db.shard)
	return err
}

// settleFirst is settle for a starting process, before it owns a shard or counts as a member. It returns ErrVersion if
// active trackers could not continue after the migration.
func (db *DB) settleFirst(ctx context.Context) error {
	s, err := db.reach(ctx)
	if err != nil {
		return err
	}
	defer hangUp(s.Conn)
	var has schema
	err = limited(ctx, db.timeout, func(ctx context.Context) (err error) {
		has, err = schemaOf(ctx, s.Conn)
		return err
	})
	if err != nil || has.version == 0 {
		return err
	}
	ready, err := db.settle(ctx, s.Conn)
	if err != nil || ready || db.opts.Shards <= 1 {
		return err
	}
	nothing := errors.New("nothing is changed")
	err = limited(ctx, db.timeout, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.Conn, func(tx pgx.Tx) error {
			return cmp.Or(db.haveAllShards(ctx, tx, has.version, len(db.migrations)), nothing)
		})
	})
	if errors.Is(err, nothing) {
		return nil
	}
	return err
}
