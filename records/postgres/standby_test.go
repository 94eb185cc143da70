package postgres_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/records/postgres"
)

// TestCommitThatTheStandbyLacksIsNotAcknowledged checks commits that only the primary has: after the store gave up
// waiting and checked the outcome, and after the server cancelled the wait, which it reports as success.
func TestCommitThatTheStandbyLacksIsNotAcknowledged(t *testing.T) {
	const cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
	for name, meanwhile := range map[string]string{"the store gives up": "SELECT", "the server gives up": cancel} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && meanwhile != cancel {
				t.Skip("slow: another pair of servers")
			}
			p := newPair(t)
			primary, standby := p.servers[0], p.servers[1]
			db := openedSoon(t, p.address())
			settled(t, db, write(db, 1, 5))
			standby.Kill()
			waiting := write(db, 6, 1)
			acknowledged := make(chan error, 1)
			go func() { acknowledged <- waiting[0].Wait(t.Context()) }()
			shown := func() bool { return p.agents(t, primary) == 6 }
			before := 0
			asked := func() bool { return p.lines[0].connections() > before+1 }
			while := func(is func() bool) func() bool {
				return func() bool {
					if err := primary.Do(t.Context(), meanwhile); err != nil {
						t.Fatal(err)
					}
					return is()
				}
			}
			eventually(t, "the primary shows a commit for which nobody waits any more", while(shown))
			before = p.lines[0].connections()
			eventually(t, "the store asked twice what became of it", while(asked))
			select {
			case err := <-acknowledged:
				t.Fatalf("it was acknowledged, or refused: %v", err)
			default:
			}
			if db.Unavailable() == nil {
				t.Error("the server is not away")
			}
			primary.Kill()
			if err := standby.Start(); err != nil {
				t.Fatal(err)
			}
			p.promote(t)
			settled(t, db, append(waiting, write(db, 7, 5)...))
			if n := stored(t, db); n != 11 {
				t.Errorf("%d writes are stored", n)
			}
		})
	}
}

// TestPromotedStandbyThatLostTransactionsIsNotWritten uses asynchronous replication, which may lose acknowledged
// commits. The store detects that and stops writing, because the tracker's memory belongs to another history. The
// next tracker continues from the standby's data.
func TestPromotedStandbyThatLostTransactionsIsNotWritten(t *testing.T) {
	p := newPair(t)
	primary, standby := p.servers[0], p.servers[1]
	db := openedSoon(t, p.address())
	settled(t, db, write(db, 1, 5))
	if err := primary.Set(t.Context(), "synchronous_standby_names", ""); err != nil {
		t.Fatal(err)
	}
	standby.Kill()
	settled(t, db, write(db, 6, 1))
	primary.Kill()
	if err := standby.Start(); err != nil {
		t.Fatal(err)
	}
	p.promote(t)
	err := write(db, 7, 1)[0].Wait(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the database changed since this tracker's last transaction: restart the tracker") {
		t.Errorf("a write: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	next := openedSoon(t, p.address())
	settled(t, next, write(next, 6, 1))
	if n := stored(t, next); n != 6 {
		t.Errorf("%d writes are stored", n)
	}
}

// TestOfTwoPrimariesTheOneThatWasPromotedIsOpened checks that a new tracker chooses the promoted server while the old
// primary still accepts writes. If it can only reach the old one, it does not start, because no standby confirms that
// server.
func TestOfTwoPrimariesTheOneThatWasPromotedIsOpened(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: it waits for stores to give up on one of a pair of servers")
	}
	p := newPair(t)
	db := openedSoon(t, p.address())
	settled(t, db, write(db, 1, 5))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	p.promote(t)
	p.lines[p.primary].cut()
	if _, err := postgres.Open(p.address(), postgres.Options{TransactionTimeout: impatience}); err == nil ||
		!strings.Contains(err.Error(), "is its synchronous standby away?") {
		t.Errorf("the old primary is opened: %v", err)
	}
	p.lines[p.primary].mend()
	db, err := postgres.Open(p.address(), postgres.Options{TransactionTimeout: impatience})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	settled(t, db, write(db, 6, 5))
	if n, old := stored(t, db), p.agents(t, p.servers[0]); n != 10 || old != 5 {
		t.Errorf("%d writes are stored, and %d on the old primary", n, old)
	}
}
