package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/postgres"
)

// outageTimeout detects hangs. A store recovers seconds after its server.
const outageTimeout = 10 * time.Minute

// crashing returns a server that the test may kill, and the address of an empty database.
func crashing(t *testing.T) (*pgserver.Server, string) {
	t.Helper()
	s, err := pgserver.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	address, err := s.Database()
	if err != nil {
		t.Fatal(err)
	}
	return s, address
}

func opened(t *testing.T, address string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(address, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// numbered returns a numbered write with a trial, which would create a second record if it were repeated.
func numbered(n int) *records.Write {
	w := &records.Write{}
	w.PutAgent(&tilthv1.Agent{Spec: &tilthv1.AgentSpec{Name: fmt.Sprintf("%06d", n)}})
	w.AppendTrials("job", "cpu", &tilthv1.TaskSpec{WorkloadDigest: records.Digest([]byte("conv"))}, []*tilthv1.JobEvent{{Sequence: uint64(n), Event: &tilthv1.JobEvent_Trial{
		Trial: &tilthv1.TrialRecorded{Measurement: storetest.Record("cpu", "conv", int64(n), 1).GetMeasurement(), BatchId: "job.0"},
	}}})
	return w
}

// stored returns the number of numbered writes in the database. Each must be complete, and none may precede an
// earlier one.
func stored(t *testing.T, db *postgres.DB) (count int) {
	t.Helper()
	err := db.Agents(func(a *tilthv1.Agent) {
		if count++; a.GetSpec().GetName() != fmt.Sprintf("%06d", count) {
			t.Errorf("write %d is called %s", count, a.GetSpec().GetName())
		}
	})
	if n := len(storetest.List(t, db, "", "")); err != nil || n != count {
		t.Errorf("there are %d agents and %d records, %v", count, n, err)
	}
	return count
}

// TestServerThatCrashesLosesNothingThatWasAcknowledged crashes a server during writes. Acknowledged writes survive,
// and pending ones are stored exactly once, in order, after the restart.
func TestServerThatCrashesLosesNothingThatWasAcknowledged(t *testing.T) {
	server, address := crashing(t)
	db := opened(t, address)
	away := make(chan error, 100)
	db.OnUnavailable(func(why error) { away <- why })
	rounds, each := storetest.QuickOr(2, 3), storetest.QuickOr(100, 400)
	written := 0
	for range rounds {
		var all []*records.Pending
		for range each {
			written++
			all = append(all, db.Commit(numbered(written)))
			if len(all) == each/4 {
				if err := all[0].Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				server.Kill()
			}
		}
		if why := await(t, away); !errors.Is(why, records.ErrAway) {
			t.Fatalf("the server is away for %v", why)
		}
		if err := db.Agents(func(*tilthv1.Agent) {}); !errors.Is(err, records.ErrAway) {
			t.Errorf("a look-up meanwhile: %v", err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			if err := p.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for why := range away {
			if why == nil {
				break
			}
		}
		if n := stored(t, db); n != written {
			t.Fatalf("%d writes are stored of %d", n, written)
		}
	}
}

// await receives with a timeout.
func await[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(outageTimeout):
		t.Fatal("it did not come")
	}
	return v
}

// TestStoreIsClosedWhileItsServerIsAway checks that stopping a tracker does not block.
func TestStoreIsClosedWhileItsServerIsAway(t *testing.T) {
	server, address := crashing(t)
	db := opened(t, address)
	server.Kill()
	p := db.Commit(numbered(1))
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Wait(t.Context()); !errors.Is(err, records.ErrClosed) {
		t.Errorf("a write that waited: %v", err)
	}
}

// TestStoreIsClosedWhileItsServerIsSilent is a regression test: closing waited for the transaction timeout.
func TestStoreIsClosedWhileItsServerIsSilent(t *testing.T) {
	address := databases.Borrow(t)
	l := newLine(t, server)
	db, err := postgres.Open(l.through(address), postgres.Options{TransactionTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	l.lose(toServer)
	p := db.Commit(numbered(1))
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Wait(t.Context()); !errors.Is(err, records.ErrClosed) {
		t.Errorf("a write that waited: %v", err)
	}
}

// TestCommitWhoseAnswerIsLostIsStoredOnce covers answers lost before and after the commit took place.
func TestCommitWhoseAnswerIsLostIsStoredOnce(t *testing.T) {
	for name, takesPlace := range map[string]bool{"after it took place": true, "before": false} {
		t.Run(name, func(t *testing.T) {
			address := databases.Borrow(t)
			line := newLine(t, server)
			db := opened(t, line.through(address))
			if err := db.Commit(numbered(1)).Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			line.breakAtCommit(takesPlace)
			for n := 2; n < 5; n++ {
				if err := db.Commit(numbered(n)).Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if line.broken() != 1 {
				t.Errorf("the line broke %d times", line.broken())
			}
			if n := stored(t, db); n != 4 {
				t.Errorf("%d writes are stored", n)
			}
		})
	}
}

// TestTrackerThatWasCutOffWritesNothingAfterAnotherTookOver checks that the database refuses later writes of a
// disconnected tracker.
func TestTrackerThatWasCutOffWritesNothingAfterAnotherTookOver(t *testing.T) {
	address := databases.Borrow(t)
	line := newLine(t, server)
	first := opened(t, line.through(address))
	if err := first.Commit(numbered(1)).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Open(address, postgres.Options{LockTimeout: time.Millisecond}); !errors.Is(err, records.ErrLocked) {
		t.Fatalf("two have it: %v", err)
	}
	line.cut()
	waiting := first.Commit(numbered(2))
	second, err := postgres.Open(address, postgres.Options{LockTimeout: outageTimeout})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	line.mend()
	if err := waiting.Wait(t.Context()); !errors.Is(err, records.ErrTakenOver) {
		t.Errorf("the write that waited: %v", err)
	}
	again := first.Commit(numbered(3)).Wait(t.Context())
	if !errors.Is(again, records.ErrTakenOver) || !strings.Contains(again.Error(), "another tracker has taken it over: this one stops") {
		t.Errorf("a later write: %v", again)
	}
	if first.Generation() == second.Generation() {
		t.Errorf("both live the life %s", first.Generation())
	}
	if err := second.Commit(numbered(2)).Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if n := stored(t, second); n != 2 {
		t.Errorf("%d writes are stored", n)
	}
}

// TestEpochThatIsOverWritesNothing checks that epochs fence writers without lock contention: a connection of an old
// epoch cannot write.
func TestEpochThatIsOverWritesNothing(t *testing.T) {
	address := databases.Borrow(t)
	db := opened(t, address)
	if err := db.Commit(numbered(1)).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	do(t, address, "UPDATE tilth.tracker SET epoch = epoch + 1")
	if err := db.Commit(numbered(2)).Wait(t.Context()); !errors.Is(err, records.ErrTakenOver) {
		t.Errorf("a write of an epoch that is over: %v", err)
	}
	if n := stored(t, db); n != 1 {
		t.Errorf("%d writes are stored", n)
	}
}

// TestDatabaseThatLostTransactionsIsNotWritten restores a backup under a running tracker, whose memory then belongs
// to another history.
func TestDatabaseThatLostTransactionsIsNotWritten(t *testing.T) {
	address := databases.Borrow(t)
	line := newLine(t, server)
	db := opened(t, line.through(address))
	for n := range 2 {
		if err := db.Commit(numbered(n + 1)).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	line.cut()
	do(t, address, "UPDATE tilth.tracker SET transaction = transaction - 1")
	line.mend()
	if err := db.Commit(numbered(3)).Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "the database changed since this tracker's last transaction") {
		t.Errorf("a write: %v", err)
	}
}
