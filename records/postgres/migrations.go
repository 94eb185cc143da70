package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/tilth-dev/tilth/records"
)

// schemaName is that of all tables.
const schemaName = "tilth"

// migrations make a schema one of the next version, each in a transaction; an empty database is of version 0. None is
// ever changed once it was released.
//
// Ids and names are bytes, so that neither the database's encoding nor its collation matters. An index entry has room
// for 2,704 bytes, and names may be longer (records.MaxNameBytes): their digests are unique, and their beginnings are
// in order.
var migrations = []string{
	`
	-- The one process that has the database. Each of its transactions writes its number.
	CREATE TABLE tracker (
		one boolean PRIMARY KEY DEFAULT true CHECK (one),
		epoch bigint NOT NULL, transaction bigint NOT NULL, life text NOT NULL,
		last_job bytea NOT NULL -- the last that was dropped
	);
	INSERT INTO tracker (epoch, transaction, life, last_job) VALUES (0, 0, '', '');

	CREATE TABLE specs (id bytea PRIMARY KEY, message bytea NOT NULL);                -- tilth.v1.JobSpec, written once
	CREATE TABLE jobs (id bytea PRIMARY KEY, message bytea NOT NULL, open boolean NOT NULL); -- JobRow
	CREATE INDEX open_jobs ON jobs (id) WHERE open;
	CREATE TABLE progress (job bytea, task bigint, message bytea NOT NULL, PRIMARY KEY (job, task)); -- tilth.v1.TaskProgress
	CREATE TABLE requests (key bytea NOT NULL, job bytea NOT NULL);
	CREATE UNIQUE INDEX requests_key ON requests (sha256(key));
	CREATE INDEX requests_job ON requests (job);
	-- EventRow, by the sequence of its last event
	CREATE TABLE events (job bytea, sequence bigint, message bytea NOT NULL, PRIMARY KEY (job, sequence));
	CREATE TABLE ended (id bytea PRIMARY KEY, message bytea NOT NULL);                -- EndedRow
	CREATE TABLE dropped (id bytea PRIMARY KEY); -- jobs of which rows of events, progress or batches are left

	CREATE TABLE batches (id bytea PRIMARY KEY, message bytea NOT NULL);              -- BatchRow of one under way
	CREATE TABLE closed_batches (id bytea PRIMARY KEY, message bytea NOT NULL);       -- BatchRow

	CREATE TABLE agents (name bytea NOT NULL, message bytea NOT NULL);                -- tilth.v1.Agent
	CREATE UNIQUE INDEX agents_name ON agents (sha256(name));
	CREATE TABLE devices (name bytea NOT NULL, message bytea NOT NULL);               -- DeviceRow
	CREATE UNIQUE INDEX devices_name ON devices (sha256(name));

	CREATE TABLE workloads (digest bytea PRIMARY KEY, canonical bytea NOT NULL);
	-- A number for each target and workload. The name is target 0 workload, best has the keys of the best records at
	-- each level of numerics, empty where there is none.
	CREATE TABLE groups (number integer PRIMARY KEY, name bytea NOT NULL, workload bytea NOT NULL, best bytea[] NOT NULL);
	CREATE UNIQUE INDEX groups_name ON groups (sha256(name));
	CREATE INDEX groups_order ON groups (substring(name, 1, 1024));
	-- tilth.v1.Record without what the group says, by records.Key
	CREATE TABLE records (grp integer, key bytea, message bytea NOT NULL, PRIMARY KEY (grp, key));

	CREATE TABLE imports (number bigint PRIMARY KEY, whole boolean NOT NULL); -- those that are whole are brought to their end
	CREATE TABLE import_chunks (import bigint, number bigint, records bytea NOT NULL, PRIMARY KEY (import, number));
	`,
	`
	-- Conversion: the rows of another store are copied into the database; empty = they are not
	ALTER TABLE tracker ADD COLUMN conversion bytea NOT NULL DEFAULT '';
	`,
	`
	-- Signs of life of the process that has the database, counted apart from its transactions, which may hold the row of
	-- the epoch for long; 0 = it gives none. Looks are those of processes that wait for it to end.
	CREATE TABLE heartbeat (
		one boolean PRIMARY KEY DEFAULT true CHECK (one), beats bigint NOT NULL, looks bigint NOT NULL
	);
	INSERT INTO heartbeat (beats, looks) VALUES (0, 0);
	`,
	`
	-- Shards: each has jobs, agents and devices of its own, and one process at a time; see shards.go. Records, and what
	-- else has no shard here, are common to all.
	ALTER TABLE tracker DROP COLUMN one, ADD COLUMN shard integer NOT NULL DEFAULT 0, ADD PRIMARY KEY (shard);
	ALTER TABLE heartbeat DROP COLUMN one, ADD COLUMN shard integer NOT NULL DEFAULT 0, ADD PRIMARY KEY (shard);
	ALTER TABLE jobs ADD COLUMN shard integer NOT NULL DEFAULT 0;
	ALTER TABLE ended ADD COLUMN shard integer NOT NULL DEFAULT 0;
	ALTER TABLE dropped ADD COLUMN shard integer NOT NULL DEFAULT 0;
	ALTER TABLE batches ADD COLUMN shard integer NOT NULL DEFAULT 0;
	ALTER TABLE agents ADD COLUMN shard integer NOT NULL DEFAULT 0;
	DROP INDEX agents_name;
	CREATE UNIQUE INDEX agents_name ON agents (shard, sha256(name));
	ALTER TABLE devices ADD COLUMN shard integer NOT NULL DEFAULT 0;
	DROP INDEX devices_name;
	CREATE UNIQUE INDEX devices_name ON devices (shard, sha256(name));
	ALTER TABLE imports ADD COLUMN shard integer NOT NULL DEFAULT 0;
	-- Processes that serve some of the shards, with the time of their last sign of life by the server's clock.
	CREATE TABLE members (id bytea PRIMARY KEY, seen timestamptz NOT NULL);
	`,
	`
	-- Where members answer calls, and the SHA-256 of the certificate that they show there; empty = none.
	ALTER TABLE members ADD COLUMN address bytea NOT NULL DEFAULT '', ADD COLUMN certificate bytea NOT NULL DEFAULT '';
	`,
	`
	-- What the members of one host have in common; empty = not known.
	ALTER TABLE members ADD COLUMN host bytea NOT NULL DEFAULT '';
	`,
}

// leastServer is the oldest version of PostgreSQL that does, as the server says it.
const leastServer = 130000

// migrate brings the schema to this version. ErrVersion when it is of a later one, or the server is too old.
func migrate(ctx context.Context, conn *pgx.Conn) error {
	version, err := prepareSchema(ctx, conn)
	for ; err == nil && version < len(migrations); version++ {
		err = migrateFrom(ctx, conn, version)
	}
	return err
}

// migrate is migrate for a database that a tracker opens.
func (db *DB) migrate(ctx context.Context) error {
	var version int
	err := db.briefly(ctx, func(ctx context.Context) (err error) {
		version, err = prepareSchema(ctx, db.conn.Conn)
		return err
	})
	for ; err == nil && version < len(migrations); version++ {
		err = db.atLength(ctx, func(ctx context.Context) error { return migrateFrom(ctx, db.conn.Conn, version) })
	}
	return err
}

// prepareSchema makes the schema, if there is none, and returns its version.
func prepareSchema(ctx context.Context, conn *pgx.Conn) (version int, err error) {
	var server int
	if err := conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int").Scan(&server); err != nil {
		return 0, err
	}
	if server < leastServer {
		return 0, fmt.Errorf("the server is PostgreSQL %d: want 13 or later", server/10000)
	}
	_, err = conn.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+schemaName+`;
		CREATE TABLE IF NOT EXISTS migrations (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())`)
	if err != nil {
		return 0, fmt.Errorf("prepare the schema: %w", err)
	}
	return versionOf(ctx, conn)
}

// migrateFrom brings the schema from a version to the next.
func migrateFrom(ctx context.Context, conn *pgx.Conn, version int) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, migrations[version]); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO migrations (version) VALUES ($1)", version+1)
		return err
	})
	if err != nil {
		return fmt.Errorf("make the schema one of version %d: %w", version+1, err)
	}
	return nil
}

// versionOf is the version of the schema. ErrVersion when it is a later one than this.
func versionOf(ctx context.Context, conn *pgx.Conn) (version int, err error) {
	err = conn.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM migrations").Scan(&version)
	if err == nil && version > len(migrations) {
		err = fmt.Errorf("%w: schema %d, this one reads 1 to %d", records.ErrVersion, version, len(migrations))
	}
	return version, err
}
