package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/postgres"
)

// waiter is a process on standby.
type waiter struct {
	standsBy chan struct{} // closed when the wait starts
	took     chan error
	db       *postgres.DB // set once took receives nil
}

// standBy starts a waiter for a database that another process has.
func standBy(t *testing.T, address string) *waiter {
	t.Helper()
	w := &waiter{standsBy: make(chan struct{}), took: make(chan error, 1)}
	go func() {
		var err error
		w.db, err = postgres.Await(t.Context(), address, postgres.Options{TransactionTimeout: impatience}, func() error {
			close(w.standsBy)
			return nil
		})
		w.took <- err
	}()
	await(t, w.standsBy)
	return w
}

// takes waits until the waiter has the database and returns the store.
func (w *waiter) takes(t *testing.T) *postgres.DB {
	t.Helper()
	if err := await(t, w.took); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.db.Close() })
	return w.db
}

// waits checks that the waiter still waits.
func (w *waiter) waits(t *testing.T) {
	t.Helper()
	select {
	case err := <-w.took:
		t.Fatalf("it waits no longer: %v", err)
	default:
	}
}

// looks returns the number of liveness checks by waiting processes.
func looks(t *testing.T, address string) (count int) {
	t.Helper()
	ask(t, address, "SELECT looks FROM tilth.heartbeat", &count)
	return count
}

// outlives waits for more checks than a waiter needs to take over from a silent tracker.
func (w *waiter) outlives(t *testing.T, address string) {
	t.Helper()
	first := looks(t, address)
	eventually(t, "it looked often", func() bool {
		w.waits(t)
		return looks(t, address) > first+9
	})
	w.waits(t)
}

// TestWaitingTrackerTakesOverFromOneThatStops checks that a stopping tracker releases the database to a waiter.
func TestWaitingTrackerTakesOverFromOneThatStops(t *testing.T) {
	t.Parallel() // mostly waits
	address := databases.Borrow(t)
	first := opened(t, address)
	settled(t, first, write(first, 1, 3))
	w := standBy(t, address)
	w.outlives(t, address)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := w.takes(t)
	settled(t, second, write(second, 4, 1))
	if n := stored(t, second); n != 4 {
		t.Errorf("%d writes are stored", n)
	}
}

// TestStandbyTrackerTakesOverFromASilentOne checks that pending transactions of a disconnected tracker end
// before the next one takes over, although no connection was closed.
func TestStandbyTrackerTakesOverFromASilentOne(t *testing.T) {
	t.Parallel() // mostly waits
	address := databases.Borrow(t)
	line := newLine(t, server)
	first := opened(t, line.through(address))
	failed := make(chan error, 1)
	first.OnFailed(func(why error) { failed <- why })
	settled(t, first, write(first, 1, 3))
	w := standBy(t, address)
	line.lose(toServer)
	line.lose(toClient)
	waiting := write(first, 4, 1)[0]
	second := w.takes(t)
	settled(t, second, write(second, 4, 1))
	line.mend()
	if why := await(t, failed); !errors.Is(why, records.ErrTakenOver) {
		t.Errorf("it hears of %v", why)
	}
	if err := waiting.Wait(t.Context()); !errors.Is(err, records.ErrTakenOver) {
		t.Errorf("the write that waited: %v", err)
	}
	if n := stored(t, second); n != 4 {
		t.Errorf("%d writes are stored", n)
	}
}

// TestTrackerWithASlowTransactionKeepsItsDatabase checks that slow transactions do not make a tracker lose its
// database.
func TestTrackerWithASlowTransactionKeepsItsDatabase(t *testing.T) {
	t.Parallel() // mostly waits
	address := databases.Borrow(t)
	first := opened(t, address)
	settled(t, first, write(first, 1, 1))
	release := hold(t, address, "SELECT FROM tilth.tracker FOR UPDATE")
	waiting := write(first, 2, 1)
	session := holder(t, address)
	w := standBy(t, address)
	w.outlives(t, address)
	if now := holder(t, address); now != session {
		t.Errorf("session %d has the database, and had been %d", now, session)
	}
	release()
	settled(t, first, waiting)
	w.waits(t)
}

// TestTrackerWhoseSessionEndsKeepsItsDatabase checks that a live tracker reacquires the lock that its session
// briefly released.
func TestTrackerWhoseSessionEndsKeepsItsDatabase(t *testing.T) {
	t.Parallel() // mostly waits
	address := databases.Borrow(t)
	first := opened(t, address)
	w := standBy(t, address)
	w.outlives(t, address)
	do(t, address, "SELECT pg_terminate_backend(pid) "+holders)
	w.outlives(t, address)
	settled(t, first, write(first, 1, 1))
	w.waits(t)
}

// TestTrackerThatWaitsForTheStandbyKeepsItsDatabase although it cannot commit while no standby confirms.
func TestTrackerThatWaitsForTheStandbyKeepsItsDatabase(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: it waits while a pair of servers commits nothing")
	}
	t.Parallel() // mostly waits
	p := newPair(t)
	first := openedSoon(t, p.address())
	settled(t, first, write(first, 1, 1))
	w := standBy(t, p.address())
	p.servers[1].Kill()
	waiting := write(first, 2, 1)
	w.outlives(t, p.servers[0].Address(p.servers[0].Folder(), p.database)) // the store gave up waiting and reconnected
	if err := p.servers[1].Start(); err != nil {
		t.Fatal(err)
	}
	settled(t, first, waiting)
	w.waits(t)
}

// TestTrackerKeepsItsDatabaseWhenTheServerCrashes checks that the present tracker reconnects before any waiter.
func TestTrackerKeepsItsDatabaseWhenTheServerCrashes(t *testing.T) {
	t.Parallel() // mostly waits
	crashing, address := crashing(t)
	first := opened(t, address)
	settled(t, first, write(first, 1, 1))
	w := standBy(t, address)
	crashing.Kill()
	waiting := write(first, 2, 1)
	if err := crashing.Start(); err != nil {
		t.Fatal(err)
	}
	settled(t, first, waiting)
	w.outlives(t, address)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := w.takes(t)
	if n := stored(t, second); n != 2 {
		t.Errorf("%d writes are stored", n)
	}
}

// TestOneOfManyTrackersHasTheDatabase starts several trackers together. One gets the database, and the others follow
// in turn as their predecessors stop.
func TestOneOfManyTrackersHasTheDatabase(t *testing.T) {
	t.Parallel()                      // mostly waits
	address, err := server.Database() // without tables
	if err != nil {
		t.Fatal(err)
	}
	const many = 3
	var active atomic.Int32
	took := make(chan *postgres.DB, many)
	for range many {
		go func() {
			db, err := postgres.Await(t.Context(), address, postgres.Options{}, func() error { return nil })
			if err != nil {
				t.Error(err)
				return
			}
			if n := active.Add(1); n != 1 {
				t.Errorf("%d have the database", n)
			}
			took <- db
		}()
	}
	lives := map[string]bool{}
	for n := range many {
		db := await(t, took)
		settled(t, db, write(db, n+1, 1))
		lives[db.Generation()] = true
		active.Add(-1)
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(lives) != many {
		t.Errorf("they live %d lives", len(lives))
	}
}

// TestConversionKeepsItsDatabase checks that a conversion is not interrupted, although it sends no heartbeats.
func TestConversionKeepsItsDatabase(t *testing.T) {
	t.Parallel() // mostly waits
	address := databases.Borrow(t)
	if err := opened(t, address).Close(); err != nil {
		t.Fatal(err)
	}
	source, err := postgres.OpenSource(t.Context(), address, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := standBy(t, address)
	w.outlives(t, address)
	if err := source.Close(); err != nil {
		t.Fatal(err)
	}
	w.takes(t)
}

// TestAwaitEndsWithItsContext checks that stopping a standby does not block.
func TestAwaitEndsWithItsContext(t *testing.T) {
	t.Parallel() // mostly waits
	address := databases.Borrow(t)
	opened(t, address)
	stop := errors.New("stopped")
	if _, err := postgres.Await(t.Context(), address, postgres.Options{}, func() error { return stop }); !errors.Is(err, stop) {
		t.Errorf("by who is told: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := postgres.Await(ctx, address, postgres.Options{}, func() error {
		cancel(stop)
		return nil
	})
	if !errors.Is(err, stop) {
		t.Errorf("by its context: %v", err)
	}
}

// TestAwaitDistinguishesAnUnavailableServerFromAWrongAddress because an unavailable server may return, unlike a wrong
// address.
func TestAwaitDistinguishesAnUnavailableServerFromAWrongAddress(t *testing.T) {
	address := databases.Borrow(t)
	for name, c := range map[string]struct {
		address string
		away    bool
	}{
		"nobody listens":   {"postgres:///tilth?host=" + t.TempDir(), true},
		"no such database": {server.Address(server.Folder(), "unknown"), false},
		"no such user":     {strings.Replace(address, "user="+pgserver.User, "user=unknown", 1), false},
	} {
		_, err := postgres.Await(t.Context(), c.address, postgres.Options{}, func() error { return nil })
		if err == nil || errors.Is(err, records.ErrAway) != c.away {
			t.Errorf("%s: %v", name, err)
		}
		if said := (*pgconn.PgError)(nil); !c.away && !errors.As(err, &said) {
			t.Errorf("%s: the server does not say it: %v", name, err)
		}
	}
}

// TestAwaitContinuesWithTheServerThatAnswers is a regression test: a server that stalled or disappeared right after
// accepting a connection blocked a waiter forever, although another server was available.
func TestAwaitContinuesWithTheServerThatAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		text  string // part of the unanswered query
		shard int
		fails bool // at the start, which is not retried
	}{
		"asks for the timeline":        {text: "pg_walfile_name"},
		"asks for the lock":            {text: "pg_try_advisory_lock", fails: true},
		"is to look at the heartbeats": {text: "SET synchronous_commit"},
		"waits for the shard":          {text: "usable_by", shard: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // mostly waits
			address := databases.Borrow(t)
			first := opened(t, address)
			silent := newLine(t, server)
			lost := silent.loseAtText(c.text)
			both := strings.Replace(address, server.Folder(), silent.folder+","+server.Folder(), 1)
			took := make(chan error, 1)
			go func() {
				opts := postgres.Impatient(postgres.Options{Shard: c.shard, Shards: 2 * c.shard}, impatience)
				db, err := postgres.Await(t.Context(), both, opts, func() error { return nil })
				if err == nil {
					err = db.Close()
				}
				took <- err
			}()
			await(t, lost)
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			if c.shard > 0 {
				shardOf(t, address, 0, 2)
			}
			select {
			case err := <-took:
				if (err != nil) != c.fails {
					t.Errorf("the wait ends with %v", err)
				}
			case <-time.After(hang):
				t.Fatal("it still waits")
			}
		})
	}
}

// TestBlockedTakeoverTimesOut is a regression test: a process that stalled during a takeover held the lock for ten
// minutes, the limit of a migration.
func TestBlockedTakeoverTimesOut(t *testing.T) {
	for name, sql := range map[string]string{
		"heartbeats": "SELECT FROM tilth.heartbeat FOR UPDATE", "migrations": "LOCK tilth.migrations", "epoch": "SELECT FROM tilth.tracker FOR UPDATE",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // mostly waits
			address := databases.Borrow(t)
			if err := opened(t, address).Close(); err != nil {
				t.Fatal(err)
			}
			release := hold(t, address, sql)
			taken := make(chan error, 1)
			go func() {
				db, err := postgres.Await(t.Context(), address, postgres.Options{TransactionTimeout: impatience}, func() error { return nil })
				if err == nil {
					err = db.Close()
				}
				taken <- err
			}()
			if err := await(t, taken); err == nil {
				t.Error("it was taken over")
			}
			release()
			opened(t, address)
		})
	}
}

// holders is the end of a query of the sessions that have locks of the database: the tracker's.
const holders = `FROM pg_locks
	WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

// holder returns the process id of the session that has the database; 0 if none.
func holder(t *testing.T, address string) (pid int) {
	t.Helper()
	ask(t, address, "SELECT coalesce(max(pid), 0) "+holders, &pid)
	return pid
}

// hold holds the locks of a statement in a transaction until release is called.
func hold(t *testing.T, address, sql string) (release func()) {
	t.Helper()
	conn := connect(t, address)
	if _, err := conn.Exec(t.Context(), "BEGIN;"+sql); err != nil {
		t.Fatal(err)
	}
	return func() { conn.Close(context.Background()) }
}
