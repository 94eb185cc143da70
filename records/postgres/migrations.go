package postgres

// schemaName is the schema of all tables.
const schemaName = "tilth"

// migration brings a schema to the next version, in one transaction.
type migration struct {
	// usableBy is the oldest version whose trackers may use the database afterwards. It is the migration's own version
	// if it removes or changes what the previous version reads or writes.
	usableBy int
	sql      string
}

// migrations lead from an empty database, version 0, to this version. A released migration must never change.
//
// Trackers are upgraded one by one, so migrations run while trackers of the previous version are active, and both
// versions use the result. A new migration should:
//
//   - Expand first, and declare the result usable by the previous version. It adds a table, or a column that is
//     nullable or has a constant default. The previous version names the columns that it writes: it preserves others
//     when it updates a row, and omits them when it inserts a row or moves one to another table. It rewrites messages
//     from memory with the fields it knows. Data that must survive therefore needs a column or table rather than a
//     message field, and new enum values are written one version later. Rows that belong to a job's must be removed
//     even when the previous version removed only the job's.
//   - Contract at the earliest one version later: remove what the previous version no longer uses, and declare the
//     rest usable by it.
//   - Otherwise, declare the result usable by its own version only. Such a migration runs only while no other tracker
//     has a shard, so operators must stop the farm for it.
//   - Not lock a table for long if the previous version may use the result. Each statement is limited to a second, and
//     waits a fraction of a second for a table. It must not rewrite, read or check a large table (no change of a
//     column's type, no default that is not constant, no constraint without NOT VALID) nor create an index on one:
//     CREATE INDEX CONCURRENTLY cannot run in a transaction. It should lock as few tables as possible.
//
// Ids and names are bytea, so that encoding and collation of the database do not matter. An index entry has at most
// 2,704 bytes, and names may be longer (records.MaxNameBytes): unique indexes use their digests, ordered indexes their
// prefixes.
var migrations = []migration{
	{usableBy: 1, sql: `
	-- Each shard has jobs, agents and devices of its own, and one process at a time, each of whose transactions writes its
	-- number; see shards.go. Records, and what else has no shard here, are common to all.
	CREATE TABLE tracker (
		shard integer PRIMARY KEY, epoch bigint NOT NULL, transaction bigint NOT NULL, life text NOT NULL,
		last_job bytea NOT NULL, -- the last that was dropped
		conversion bytea NOT NULL DEFAULT '' -- Conversion: the rows of another store are copied into the database; empty = they are not
	);
	INSERT INTO tracker (shard, epoch, transaction, life, last_job) VALUES (0, 0, 0, '', '');
	-- Signs of life of the process that has a shard, counted apart from its transactions, which may hold the row of the
	-- epoch for long; 0 = it gives none. Looks are those of processes that wait for it to end.
	CREATE TABLE heartbeat (shard integer PRIMARY KEY, beats bigint NOT NULL, looks bigint NOT NULL);
	INSERT INTO heartbeat (shard, beats, looks) VALUES (0, 0, 0);
	-- Processes that serve some of the shards: the time of their last sign of life by the server's clock, where they answer
	-- calls, the SHA-256 of the certificate that they show there, and what those of one host have in common; empty = none.
	CREATE TABLE members (
		id bytea PRIMARY KEY, seen timestamptz NOT NULL, address bytea NOT NULL, certificate bytea NOT NULL, host bytea NOT NULL
	);

	CREATE TABLE specs (id bytea PRIMARY KEY, message bytea NOT NULL);                -- tilth.v1.JobSpec, written once
	CREATE TABLE jobs (id bytea PRIMARY KEY, message bytea NOT NULL, open boolean NOT NULL, shard integer NOT NULL DEFAULT 0); -- JobRow
	CREATE INDEX open_jobs ON jobs (id) WHERE open;
	CREATE TABLE progress (job bytea, task bigint, message bytea NOT NULL, PRIMARY KEY (job, task)); -- tilth.v1.TaskProgress
	CREATE TABLE requests (key bytea NOT NULL, job bytea NOT NULL);
	CREATE UNIQUE INDEX requests_key ON requests (sha256(key));
	CREATE INDEX requests_job ON requests (job);
	-- EventRow, by the sequence of its last event
	CREATE TABLE events (job bytea, sequence bigint, message bytea NOT NULL, PRIMARY KEY (job, sequence));
	CREATE TABLE ended (id bytea PRIMARY KEY, message bytea NOT NULL, shard integer NOT NULL DEFAULT 0); -- EndedRow
	-- Jobs of which rows of events, progress or batches are left
	CREATE TABLE dropped (id bytea PRIMARY KEY, shard integer NOT NULL DEFAULT 0);

	CREATE TABLE batches (id bytea PRIMARY KEY, message bytea NOT NULL, shard integer NOT NULL DEFAULT 0); -- BatchRow of one under way
	CREATE TABLE closed_batches (id bytea PRIMARY KEY, message bytea NOT NULL);       -- BatchRow

	CREATE TABLE agents (name bytea NOT NULL, message bytea NOT NULL, shard integer NOT NULL DEFAULT 0); -- tilth.v1.Agent
	CREATE UNIQUE INDEX agents_name ON agents (shard, sha256(name));
	CREATE TABLE devices (name bytea NOT NULL, message bytea NOT NULL, shard integer NOT NULL DEFAULT 0); -- DeviceRow
	CREATE UNIQUE INDEX devices_name ON devices (shard, sha256(name));

	CREATE TABLE workloads (digest bytea PRIMARY KEY, canonical bytea NOT NULL);
	-- A number for each target and workload. The name is target 0 workload, best has the keys of the best records at
	-- each level of numerics, empty where there is none.
	CREATE TABLE groups (number integer PRIMARY KEY, name bytea NOT NULL, workload bytea NOT NULL, best bytea[] NOT NULL);
	CREATE UNIQUE INDEX groups_name ON groups (sha256(name));
	CREATE INDEX groups_order ON groups (substring(name, 1, 1024));
	-- tilth.v1.Record without what the group says, by records.Key
	CREATE TABLE records (grp integer, key bytea, message bytea NOT NULL, PRIMARY KEY (grp, key));

	-- Those that are whole are brought to their end
	CREATE TABLE imports (number bigint PRIMARY KEY, whole boolean NOT NULL, shard integer NOT NULL DEFAULT 0);
	CREATE TABLE import_chunks (import bigint, number bigint, records bytea NOT NULL, PRIMARY KEY (import, number));
	`},
}
