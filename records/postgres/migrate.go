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
	// leastServer is the oldest version of PostgreSQL that does, as the server says it.
	leastServer = 130000
	// migrationLock is the key of the lock of who changes the schema: of several that start at once one does, and the
	// others find it done.
	migrationLock = 2<<56 | advisoryLock
	// lockWait is how long a migration waits for a table that a transaction uses. All who come later wait for it
	// meanwhile, also with a heartbeat, so it is a fraction of beatTimeout.
	lockWait = "200ms"
	// longestStatement bounds each statement of a migration beside which others serve: it has a table to itself.
	longestStatement = "1s"
	// longestIdle bounds how long a process that stands still amid a migration keeps its tables from others.
	longestIdle = "2s"
	// Between two tries to have a table.
	firstTableRetry, longestTableRetry = 250 * time.Millisecond, 4 * time.Second
	// tableTimeout is after how long people are told that a migration does not get its tables.
	tableTimeout = time.Minute
)

// schema is what a database has.
type schema struct {
	version  int // of the last migration; 0 = there was none
	usableBy int // the oldest version whose trackers may use it
}

// schemaOf asks a database for its schema. Rows of migrations from before these said by whom a schema is usable say
// nothing: by their own version.
func schemaOf(ctx context.Context, conn *pgx.Conn) (s schema, err error) {
	var there bool
	err = conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", schemaName+".migrations").Scan(&there)
	if err == nil && there {
		err = conn.QueryRow(ctx, `SELECT coalesce(max(version), 0), coalesce(max(coalesce((to_jsonb(m) ->> 'usable_by')::integer, version)), 0)
			FROM migrations m`).Scan(&s.version, &s.usableBy)
	}
	return s, err
}

// mayUse refuses a schema that is not for trackers of this version: ErrVersion.
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

// migrate brings the schema to this version, on the connection that holds the lock, or finds a later one that this one
// may use. ErrVersion when it may not, or when others serve that could not use what it would make.
func (db *DB) migrate(ctx context.Context) error {
	err := db.briefly(ctx, func(ctx context.Context) (err error) {
		db.schema, err = db.prepareSchema(ctx)
		return err
	})
	if err != nil || db.schema.version >= len(db.migrations) {
		return err
	}
	db.schema, err = db.migrateOn(ctx, db.conn.Conn)
	return err
}

// prepareSchema makes the schema, if there is none, and returns what the database has.
func (db *DB) prepareSchema(ctx context.Context) (s schema, err error) {
	conn := db.conn.Conn
	var server int
	if err := conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int").Scan(&server); err != nil {
		return s, err
	}
	if server < leastServer {
		return s, fmt.Errorf("the server is PostgreSQL %d: want 13 or later", server/10000)
	}
	_, err = conn.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+schemaName+`;
		CREATE TABLE IF NOT EXISTS migrations (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), usable_by integer)`)
	if err != nil {
		return s, fmt.Errorf("prepare the schema: %w", err)
	}
	if s, err = schemaOf(ctx, conn); err == nil {
		err = db.mayUse(s)
	}
	return s, err
}

// settle brings the schema of a database that others may serve to this version, if they can use it, too. ready is
// false while only a process that has all shards may do so. ErrVersion when the schema is not for this version.
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

// migrateOn makes the migrations that a database lacks, on a connection, and returns what it has then.
func (db *DB) migrateOn(ctx context.Context, conn *pgx.Conn) (s schema, err error) {
	err = db.atLength(ctx, func(ctx context.Context) error {
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

// awaitMigrations waits until no other process changes the schema.
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

// endMigrations gives way to others. A connection that is broken has given way.
func endMigrations(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), beatTimeout)
	defer cancel()
	_, _ = conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", int64(migrationLock))
}

// migrateFrom brings the schema from a version to the next. While others use the tables that it changes, it tries
// again and again rather than wait in front of those who come later: ErrInUse when that does not do.
func (db *DB) migrateFrom(ctx context.Context, conn *pgx.Conn, version int) error {
	begin := time.Now()
	for wait := firstTableRetry; ; wait = min(2*wait, longestTableRetry) {
		err := db.tryMigration(ctx, conn, version)
		switch {
		case err == nil:
			return nil
		case isInUse(err) && time.Since(begin) >= tableTimeout:
			return fmt.Errorf("make the schema one of version %d: %w: %v", version+1, records.ErrInUse, err)
		case tookLong(err):
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

// isInUse says whether a migration did not get a table in time.
func isInUse(err error) bool {
	code := codeOf(err)
	return code == "55P03" || code == "40P01" // the lock is not available; a deadlock
}

// tookLong says whether a statement of a migration was ended, since others would have waited for it.
func tookLong(err error) bool { return codeOf(err) == "57014" }

// codeOf is the code of an error that the server says; empty = it is of another.
func codeOf(err error) string {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return said.Code
	}
	return ""
}

// tryMigration is migrateFrom, once.
func (db *DB) tryMigration(ctx context.Context, conn *pgx.Conn, version int) error {
	m := db.migrations[version]
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		limits := "SET LOCAL lock_timeout = '" + lockWait + "'; SET LOCAL idle_in_transaction_session_timeout = '" + longestIdle + "'"
		err := db.haveAllShards(ctx, tx, version, m.usableBy)
		if m.usableBy <= version && errors.Is(err, records.ErrVersion) { // others serve, and may go on
			limits += "; SET LOCAL statement_timeout = '" + longestStatement + "'"
			err = nil
		}
		for _, sql := range []string{limits, m.sql, "ALTER TABLE migrations ADD COLUMN IF NOT EXISTS usable_by integer"} {
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

// haveAllShards takes all shards from processes that may come back, for a transaction that changes the schema: nobody
// serves then. ErrVersion when another one has a shard.
func (db *DB) haveAllShards(ctx context.Context, tx pgx.Tx, version, usableBy int) error {
	var sharded bool
	if err := tx.QueryRow(ctx, "SELECT "+shardedSQL).Scan(&sharded); err != nil {
		return err
	}
	shards := 1
	if sharded {
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
	if !sharded || usableBy <= version {
		return nil
	}
	// A lock that is free says little: the server may have started anew, and a tracker be about to take it again.
	_, err := tx.Exec(ctx, "UPDATE tracker SET epoch = epoch + 1 WHERE shard <> $1", db.shard)
	return err
}

// settleFirst is settle for a process that begins, before it has a shard in its hands or a part in their shares.
// ErrVersion when others serve shards that could not go on with what it would make.
func (db *DB) settleFirst(ctx context.Context) error {
	s, err := db.reach(ctx)
	if err != nil {
		return err
	}
	defer hangUp(s.Conn)
	var has schema
	err = db.briefly(ctx, func(ctx context.Context) (err error) {
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
	err = db.briefly(ctx, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.Conn, func(tx pgx.Tx) error {
			return cmp.Or(db.haveAllShards(ctx, tx, has.version, len(db.migrations)), nothing)
		})
	})
	if errors.Is(err, nothing) {
		return nil
	}
	return err
}
