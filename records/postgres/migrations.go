package postgres

// schemaName is that of all tables.
const schemaName = "tilth"

// migration makes a schema one of the next version, in a transaction.
type migration struct {
	// usableBy is the oldest version whose trackers may go on using the database after it: the migration's own where
	// it takes away or changes what the one before reads and writes.
	usableBy int
	sql      string
}

// migrations are those from an empty database, of version 0, on. None is ever changed once it was released.
//
// Trackers are upgraded one by one, so a migration is made while trackers of the version before serve, and what it
// makes is used by both. Whoever writes the next one:
//
//   - expands first, and says that the version before may use it. It adds a table, or a column that may be NULL or has
//     a constant default. The version before names the columns that it writes: it keeps others when it changes a row,
//     and a row that it adds, or moves to another table, has none. Messages it writes anew, as it knows them, since a
//     tracker has them in memory. So what has to last is a column or a table and no field of a message, and a value
//     that is new to an enum is written a version later. Rows of a table that go with a job's are removed when the
//     version before has removed only that.
//   - contracts a version later at the earliest: takes away what the version before does not use any more, and says
//     that it may use the rest.
//   - where neither will do, says that only its own version may use it. Such a migration is made while no other tracker
//     has a shard, or not at all: people have to stop the farm for it.
//   - has no table for long where the version before may use it. Each statement has a second, and waits a fraction of
//     one for a table. It rewrites, reads and checks none that may be large (no other type of a column, no default that
//     is not constant, no constraint that is not NOT VALID), and gives none an index: CREATE INDEX CONCURRENTLY does not
//     run in a transaction. It locks as few tables as will do.
//
// Ids and names are bytes, so that neither the database's encoding nor its collation matters. An index entry has room
// for 2,704 bytes, and names may be longer (records.MaxNameBytes): their digests are unique, and their beginnings are
// in order.
var migrations = []migration{
	{usableBy: 1, sql: `
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
	`},
	{usableBy: 2, sql: `
	-- Conversion: the rows of another store are copied into the database; empty = they are not
	ALTER TABLE tracker ADD COLUMN conversion bytea NOT NULL DEFAULT '';
	`},
	{usableBy: 3, sql: `
	-- Signs of life of the process that has the database, counted apart from its transactions, which may hold the row of
	-- the epoch for long; 0 = it gives none. Looks are those of processes that wait for it to end.
	CREATE TABLE heartbeat (
		one boolean PRIMARY KEY DEFAULT true CHECK (one), beats bigint NOT NULL, looks bigint NOT NULL
	);
	INSERT INTO heartbeat (beats, looks) VALUES (0, 0);
	`},
	{usableBy: 4, sql: `
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
	`},
	{usableBy: 4, sql: `
	-- Where members answer calls, and the SHA-256 of the certificate that they show there; empty = none.
	ALTER TABLE members ADD COLUMN address bytea NOT NULL DEFAULT '', ADD COLUMN certificate bytea NOT NULL DEFAULT '';
	`},
	{usableBy: 4, sql: `
	-- What the members of one host have in common; empty = not known.
	ALTER TABLE members ADD COLUMN host bytea NOT NULL DEFAULT '';
	`},
}
