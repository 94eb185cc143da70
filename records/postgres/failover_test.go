package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/postgres"
)

// impatience is the transaction timeout in these tests. A transaction takes less on a busy machine.
const impatience = 2 * time.Second

// pair is a primary and its standby, each behind a separate line.
type pair struct {
	servers  [2]*pgserver.Server
	lines    [2]*line
	primary  int // index of the primary
	database string
}

// newPair returns a pair with an empty database and synchronous replication.
func newPair(t *testing.T) *pair {
	t.Helper()
	primary, address := crashing(t)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{servers: [2]*pgserver.Server{primary, nil}, database: strings.TrimPrefix(u.Path, "/")}
	p.lines[0] = newLine(t, primary)
	p.lines[1] = newLine(t, primary)
	p.addStandby(t)
	return p
}

// addStandby replaces the other server by a new standby of the primary.
func (p *pair) addStandby(t *testing.T) {
	t.Helper()
	primary := p.servers[p.primary]
	standby, err := pgserver.Standby(primary.Folder())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Stop(); err != nil {
			t.Error(err)
		}
	})
	p.servers[1-p.primary] = standby
	p.lines[1-p.primary].lead(standby)
	p.lines[1-p.primary].mend()
	if err := primary.WaitForStandby(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// promote promotes the standby.
func (p *pair) promote(t *testing.T) {
	t.Helper()
	p.primary = 1 - p.primary
	if err := p.servers[p.primary].Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// address returns an address with both servers.
func (p *pair) address() string {
	return fmt.Sprintf("postgres:///%s?host=%s,%s&user=%s&target_session_attrs=read-write",
		p.database, p.lines[0].folder, p.lines[1].folder, pgserver.User)
}

// agents counts the numbered writes on a server, bypassing the line.
func (p *pair) agents(t *testing.T, server *pgserver.Server) (count int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.Address(server.Folder(), p.database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM tilth.agents").Scan(&count); err != nil {
		t.Fatal(err)
	}
	return count
}

func openedSoon(t *testing.T, address string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(address, postgres.Options{TransactionTimeout: impatience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// eventually waits until is returns true, with a timeout.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	pause := 2 * time.Millisecond
	for end := time.Now().Add(hang); !is(); time.Sleep(pause) {
		if time.Now().After(end) {
			t.Fatalf("it did not come to be that %s", what)
		}
		pause = min(2*pause, 250*time.Millisecond) // most conditions open a connection
	}
}

// hang is a timeout that no operation reaches on a busy machine.
const hang = 10 * time.Minute

// settled waits for all writes.
func settled(t *testing.T, db *postgres.DB, all []*records.Pending) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	for i, p := range all {
		if err := p.Wait(ctx); err != nil {
			t.Fatalf("write %d: %v; the server is away: %v", i, err, db.Unavailable())
		}
	}
}

// TestStoreContinuesWithThePromotedStandby checks that a store reconnects to the promoted server without losing or
// repeating anything. The old primary is down, silent or unreachable, or returns and accepts writes.
func TestStoreContinuesWithThePromotedStandby(t *testing.T) {
	p := newPair(t)
	db := openedSoon(t, p.address())
	written := 0
	more := func(n int) []*records.Pending {
		written += n
		return write(db, written-n+1, n)
	}
	for i, fault := range []struct {
		name    string
		happens func(*pgserver.Server, *line)
		returns func(*pgserver.Server, *line) error
	}{
		{"killed", func(s *pgserver.Server, _ *line) { s.Kill() }, func(s *pgserver.Server, _ *line) error { return s.Start() }},
		{"frozen", func(s *pgserver.Server, _ *line) { s.Freeze() }, func(s *pgserver.Server, _ *line) error { s.Thaw(); return nil }},
		{"cut off", func(_ *pgserver.Server, l *line) { l.cut() }, func(_ *pgserver.Server, l *line) error { l.mend(); return nil }},
		{"unheard", func(_ *pgserver.Server, l *line) { l.lose(toClient) }, func(_ *pgserver.Server, l *line) error { l.cut(); l.mend(); return nil }},
		{"unhearing", func(_ *pgserver.Server, l *line) { l.lose(toServer) }, func(_ *pgserver.Server, l *line) error { l.cut(); l.mend(); return nil }},
	} {
		if i > 1 && testing.Short() {
			return // slow: a standby for each fault
		}
		if i > 0 {
			p.addStandby(t)
		}
		is := t.Run(fault.name, func(t *testing.T) {
			old, way := p.servers[p.primary], p.lines[p.primary]
			all := more(100)
			settled(t, db, all[:20])
			fault.happens(old, way)
			all = append(all, more(100)...)
			p.promote(t)
			settled(t, db, all)
			if n := stored(t, db); n != written {
				t.Fatalf("%d writes are stored of %d", n, written)
			}
			if err := fault.returns(old, way); err != nil {
				t.Fatal(err)
			}
			// It now confirms its commits without a standby.
			if err := old.Set(t.Context(), "synchronous_standby_names", ""); err != nil {
				t.Fatal(err)
			}
			p.lines[p.primary].cut() // both servers accept writes
			p.lines[p.primary].mend()
			settled(t, db, more(20))
			if n := stored(t, db); n != written {
				t.Fatalf("%d writes are stored of %d", n, written)
			}
			if n := p.agents(t, old); n > written-20 {
				t.Errorf("the old primary has %d writes: some were made after the other was promoted", n)
			}
			old.Kill()
		})
		if !is {
			return
		}
	}
}

// TestLookUpsLeaveTheServerThatWasReplaced is a regression test: a read that started just before the store detected a
// failure could reconnect to the old server. Later reads then returned outdated rows, although another server had
// been promoted.
func TestLookUpsLeaveTheServerThatWasReplaced(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: it waits for takeovers of a pair of servers")
	}
	p := newPair(t)
	db := openedSoon(t, p.address())
	settled(t, db, write(db, 1, 5))
	// The store loses its session and finds the lock held at each reconnect, so it cannot use that server.
	old := p.servers[p.primary].Address(p.servers[p.primary].Folder(), p.database)
	pid := holder(t, old)
	other := connect(t, old)
	defer other.Close(context.Background())
	held := make(chan error, 1)
	go func() {
		_, err := other.Exec(t.Context(), "SELECT pg_advisory_lock(499984921704)")
		held <- err
	}()
	eventually(t, "the lock is waited for", func() bool {
		var waits bool
		ask(t, old, "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)", &waits)
		return waits
	})
	do(t, old, fmt.Sprintf("SELECT pg_terminate_backend(%d)", pid))
	if err := await(t, held); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server is away", func() bool { return db.Unavailable() != nil })
	late, err := postgres.Readers(db).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if at := late.Conn().Config().Host; at != p.lines[p.primary].folder {
		t.Errorf("a late look-up is of the server at %s", at)
	}
	late.Release()
	p.promote(t)
	settled(t, db, write(db, 6, 5))
	if n := stored(t, db); n != 10 {
		t.Errorf("look-ups find %d writes of 10", n)
	}
}

// write submits n numbered writes.
func write(db *postgres.DB, first, n int) (all []*records.Pending) {
	for i := range n {
		all = append(all, db.Commit(numbered(first+i)))
	}
	return all
}
