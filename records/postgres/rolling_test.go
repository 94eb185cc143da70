package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/postgres"
)

// expand is a migration that is compatible with the previous version. It fails if it runs twice.
const expand = `ALTER TABLE jobs ADD COLUMN colour text NOT NULL DEFAULT 'grey', ADD COLUMN note bytea;
	ALTER TABLE agents ADD COLUMN colour text NOT NULL DEFAULT 'grey';
	CREATE TABLE colours (name text PRIMARY KEY)`

// newer returns options of the next version with such a migration.
func newer(opts postgres.Options) postgres.Options {
	return postgres.Newer(opts, postgres.Version(), expand)
}

// contracted returns options of the next version with an incompatible schema.
func contracted(opts postgres.Options) postgres.Options {
	return postgres.Newer(opts, postgres.Version()+1, "ALTER TABLE agents RENAME TO workers")
}

// of returns options of one of two shards.
func of(shard int) postgres.Options {
	return postgres.Options{Shard: shard, Shards: 2, TransactionTimeout: impatience}
}

// versionOf returns the schema version of a database.
func versionOf(t *testing.T, address string) (version int) {
	t.Helper()
	ask(t, address, "SELECT max(version) FROM tilth.migrations", &version)
	return version
}

// awaits starts a waiter for a database or shard.
func awaits(t *testing.T, address string, opts postgres.Options) *waiter {
	t.Helper()
	w := &waiter{standsBy: make(chan struct{}), took: make(chan error, 1)}
	go func() {
		var err error
		w.db, err = postgres.Await(t.Context(), address, opts, func() error {
			close(w.standsBy)
			return nil
		})
		w.took <- err
	}()
	return w
}

// TestVersionsOneApartShareADatabase checks that adjacent versions serve shards of one database, take them over from
// each other, and preserve data that only the later one knows.
func TestVersionsOneApartShareADatabase(t *testing.T) {
	t.Parallel() // mostly waits
	dbs, address := newShards(t, 2)
	put := func(db *postgres.DB, state tilthv1.JobState) {
		t.Helper()
		w := &records.Write{}
		w.PutJob(&storev1.JobRow{Job: &tilthv1.Job{Id: "job-00000001-" + dbs[1].Generation(), State: state}})
		w.PutAgent(&tilthv1.Agent{Spec: &tilthv1.AgentSpec{Name: "board"}})
		if err := db.Commit(w).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	put(dbs[1], tilthv1.JobState_JOB_STATE_QUEUED)
	waiting := awaits(t, address, newer(of(1)))
	await(t, waiting.standsBy)
	eventually(t, "the later version migrates though it has no shard", func() bool { return versionOf(t, address) == postgres.Version()+1 })
	do(t, address, "UPDATE tilth.jobs SET colour = 'red', note = 'later'; UPDATE tilth.agents SET colour = 'red'")
	put(dbs[1], tilthv1.JobState_JOB_STATE_RUNNING) // without a column for colours
	dbs[1].Close()
	later := waiting.takes(t)
	if jobs, err := later.OpenJobs(); err != nil || len(jobs) != 1 || jobs[0].Row.GetJob().GetState() != tilthv1.JobState_JOB_STATE_RUNNING {
		t.Errorf("the later one has the jobs %v, %v", jobs, err)
	}
	settled(t, dbs[0], write(dbs[0], 1, 3)) // the older version continues to serve
	put(later, tilthv1.JobState_JOB_STATE_QUEUED)
	back := awaits(t, address, of(1))
	await(t, back.standsBy)
	later.Close()
	earlier := back.takes(t)
	put(earlier, tilthv1.JobState_JOB_STATE_RUNNING)
	if schema, own := earlier.Schema(); schema != postgres.Version()+1 || own != postgres.Version() {
		t.Errorf("it says that the schema is of version %d, and it of %d", schema, own)
	}
	var colours string
	ask(t, address, "SELECT string_agg(j.colour || ' ' || convert_from(note, 'UTF8') || ' ' || a.colour, ',') FROM tilth.jobs j, tilth.agents a WHERE a.name = 'board'", &colours)
	if colours != "red later red" {
		t.Errorf("the colours came to %q", colours)
	}
}

// refusal reports whether an error refuses a schema and names its version, the program's version and a remedy.
func refusal(err error) bool {
	text := fmt.Sprintf("schema %d is for trackers of schema %[1]d or later, this one is of schema %d: start a later version",
		postgres.Version()+1, postgres.Version())
	return errors.Is(err, records.ErrVersion) && strings.Contains(err.Error(), text)
}

func TestSchemaThatThisVersionMayNotUseIsRefused(t *testing.T) {
	t.Parallel() // mostly waits
	address := databases.Borrow(t)
	var later []*postgres.DB
	for shard := range 2 {
		db, err := postgres.Open(address, contracted(of(shard)))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		later = append(later, db)
	}
	for shard := range 2 { // refused immediately while others serve, instead of waiting
		if err := await(t, awaits(t, address, of(shard)).took); !refusal(err) {
			t.Errorf("shard %d: %v", shard, err)
		}
	}
	for shard, db := range later { // concurrently
		db.Close()
		if _, err := postgres.Open(address, of(shard)); !refusal(err) {
			t.Errorf("shard %d: %v", shard, err)
		}
	}
}

// TestTakeoverOfASchemaThatThisVersionMayNotUseIsRefused checks that a standby detects an incompatible migration at
// its takeover.
func TestTakeoverOfASchemaThatThisVersionMayNotUseIsRefused(t *testing.T) {
	t.Parallel() // mostly waits
	dbs, address := newShards(t, 2)
	waiting := awaits(t, address, of(1))
	await(t, waiting.standsBy)
	waits := func() (n int) {
		ask(t, address, "SELECT looks FROM tilth.heartbeat WHERE shard = 1", &n)
		return n
	}
	eventually(t, "it waits", func() bool { return waits() > 2 })
	do(t, address, fmt.Sprintf("INSERT INTO tilth.migrations (version, usable_by) VALUES (%d, %[1]d)", postgres.Version()+1))
	dbs[1].Close()
	if err := await(t, waiting.took); !refusal(err) {
		t.Errorf("it came to %v", err)
	}
	settled(t, dbs[0], write(dbs[0], 1, 3)) // the serving tracker continues
}

// TestMigrationThatOthersCannotUseIsNotMadeBesideThem checks that an incompatible migration is refused until
// trackers of the previous version have stopped.
func TestMigrationThatOthersCannotUseIsNotMadeBesideThem(t *testing.T) {
	t.Parallel() // mostly waits
	dbs, address := newShards(t, 2)
	err := await(t, awaits(t, address, contracted(of(0))).took) // refused instead of waiting
	if !errors.Is(err, records.ErrVersion) || !strings.Contains(err.Error(), "another tracker has shard 0") {
		t.Fatalf("it came to %v", err)
	}
	dbs[0].Close()
	_, err = postgres.Open(address, contracted(of(0)))
	if !errors.Is(err, records.ErrVersion) || !strings.Contains(err.Error(), "another tracker has shard 1") {
		t.Fatalf("it came to %v", err)
	}
	if version := versionOf(t, address); version != postgres.Version() {
		t.Errorf("the schema is of version %d", version)
	}
	settled(t, dbs[1], write(dbs[1], 1, 3))
	dbs[1].Close()
	later, err := postgres.Open(address, contracted(of(0)))
	if err != nil {
		t.Fatal(err)
	}
	later.Close()
	if version := versionOf(t, address); version != postgres.Version()+1 {
		t.Errorf("the schema is of version %d", version)
	}
}

// TestMigrationBehindALongTransactionBlocksNoWrites checks that a migration waits for transactions on its table
// without blocking later ones.
func TestMigrationBehindALongTransactionBlocksNoWrites(t *testing.T) {
	t.Parallel() // mostly waits
	dbs, address := newShards(t, 2)
	settled(t, dbs[1], write(dbs[1], 1, 3))
	release := hold(t, address, "SELECT FROM tilth.agents LIMIT 1")
	defer release()
	waiting := awaits(t, address, newer(of(1)))
	eventually(t, "the migration waits for the table", func() (is bool) {
		ask(t, address, "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'tilth.agents'::regclass AND mode = 'AccessExclusiveLock' AND NOT granted)", &is)
		return is
	})
	within, cancel := context.WithTimeout(t.Context(), outageTimeout)
	defer cancel()
	for _, p := range write(dbs[1], 4, 3) { // on the same table
		if err := p.Wait(within); err != nil {
			t.Fatalf("a write beside the migration: %v", err)
		}
	}
	if version := versionOf(t, address); version != postgres.Version() {
		t.Fatalf("the schema is of version %d", version)
	}
	release()
	eventually(t, "it is made once the transaction ends", func() bool { return versionOf(t, address) == postgres.Version()+1 })
	settled(t, dbs[1], write(dbs[1], 7, 3))
	await(t, waiting.standsBy)
	dbs[1].Close()
	waiting.takes(t)
}

// TestTrackersThatStartAtOnceMigrateOnce checks that trackers that start together migrate once, regardless of their
// shards.
func TestTrackersThatStartAtOnceMigrateOnce(t *testing.T) {
	t.Parallel() // mostly waits
	dbs, address := newShards(t, 2)
	release := hold(t, address, "SELECT FROM tilth.jobs LIMIT 1") // until all have started
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	stand := make(chan struct{}, 6)
	for n := range cap(stand) {
		all.Go(func() {
			_, err := postgres.Await(ctx, address, newer(of(n%2)), func() error {
				stand <- struct{}{}
				return nil
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("it came to %v", err)
			}
		})
	}
	eventually(t, "one migrates and the others wait for it", func() bool {
		var waiting int
		ask(t, address, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'SELECT pg_try_advisory_lock%'", &waiting)
		return waiting == cap(stand)-1
	})
	release()
	for range cap(stand) {
		await(t, stand)
	}
	eventually(t, "the schema is of the later version", func() bool { return versionOf(t, address) == postgres.Version()+1 })
	cancel()
	all.Wait()
	var rows, usableBy int
	ask(t, address, "SELECT count(*), max(usable_by) FROM tilth.migrations", &rows, &usableBy)
	if rows != postgres.Version()+1 || usableBy != postgres.Version() {
		t.Errorf("there are %d migrations, and the last is usable by %d", rows, usableBy)
	}
	for _, db := range dbs {
		settled(t, db, []*records.Pending{db.Commit(numbered(1))})
	}
}
