package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/postgres"
)

// shardOf opens one of several shards of a database. Shard 0 must be opened first and creates the others.
func shardOf(t *testing.T, address string, shard, shards int) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(address, postgres.Options{Shard: shard, Shards: shards, TransactionTimeout: impatience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// newShards returns a new database with each shard opened by a separate tracker.
func newShards(t *testing.T, shards int) (dbs []*postgres.DB, address string) {
	t.Helper()
	address = databases.Borrow(t)
	for shard := range shards {
		dbs = append(dbs, shardOf(t, address, shard, shards))
	}
	return dbs, address
}

func TestEachShardHasJobsAndAgentsOfItsOwn(t *testing.T) {
	dbs, _ := newShards(t, 3)
	for shard, db := range dbs {
		w := &records.Write{}
		id := fmt.Sprintf("job-%08d-%s", 1, db.Generation())
		w.PutNew(id, records.RequestKey("ana", fmt.Sprint("r", shard)), &records.NewJob{Spec: []byte{}})
		w.PutJob(&storev1.JobRow{Job: &tilthv1.Job{Id: id, State: tilthv1.JobState_JOB_STATE_QUEUED}})
		w.PutBatch(id+".00000001", &storev1.BatchRow{JobId: id})
		w.PutAgent(&tilthv1.Agent{Spec: &tilthv1.AgentSpec{Name: "board"}, Session: fmt.Sprint(shard)})
		w.PutDevice("board", &storev1.DeviceRow{})
		if err := db.Commit(w).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for shard, db := range dbs {
		jobs, err := db.OpenJobs()
		if err != nil || len(jobs) != 1 || wire.ShardOf(jobs[0].ID) != shard {
			t.Errorf("shard %d has the jobs %v, %v", shard, jobs, err)
		}
		batches, err := db.OpenBatches()
		if err != nil || len(batches) != 1 || wire.ShardOf(batches[0].ID) != shard {
			t.Errorf("shard %d has the batches %v, %v", shard, batches, err)
		}
		var sessions []string
		err = db.Agents(func(a *tilthv1.Agent) { sessions = append(sessions, a.GetSession()) })
		if err != nil || !slices.Equal(sessions, []string{fmt.Sprint(shard)}) {
			t.Errorf("shard %d has the sessions %v, %v", shard, sessions, err)
		}
		devices := 0
		if err := db.Devices(func(string, *storev1.DeviceRow) { devices++ }); err != nil || devices != 1 {
			t.Errorf("shard %d has %d devices, %v", shard, devices, err)
		}
		// Every tracker lists the jobs of all shards.
		all, _, err := db.Jobs(records.JobQuery{Max: 10, MaxBytes: 1 << 20})
		if err != nil || len(all) != len(dbs) {
			t.Errorf("shard %d tells of %d jobs, %v", shard, len(all), err)
		}
	}
	w := &records.Write{}
	w.DropAgent("board")
	w.DropDevice("board")
	if err := dbs[1].Commit(w).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for shard, want := range []int{1, 0, 1} {
		agents := 0
		if err := dbs[shard].Agents(func(*tilthv1.Agent) { agents++ }); err != nil || agents != want {
			t.Errorf("shard %d has %d agents, %v, want %d", shard, agents, err, want)
		}
	}
}

// trial returns a write of one numbered trial of a job.
func trial(job string, workload string, n int) *records.Write {
	w := &records.Write{}
	// The latencies vary, so that the best record changes.
	m := storetest.Record("cpu", workload, int64(n), 1+float64((n*7919)%1000)/1000).GetMeasurement()
	w.AppendTrials(job, "cpu", &tilthv1.TaskSpec{WorkloadDigest: records.Digest([]byte(workload))}, []*tilthv1.JobEvent{{Sequence: uint64(n), Event: &tilthv1.JobEvent_Trial{
		Trial: &tilthv1.TrialRecorded{Measurement: m, BatchId: job + ".0"},
	}}})
	return w
}

// TestGroupThatAnotherProcessBeganIsSharedAtOnce is a regression test: only the creator of a group needs exclusive
// access to the records. A process that did not know an existing group used to lock them too, so a thousand workloads
// blocked all others in the first seconds of each tracker.
func TestGroupThatAnotherProcessBeganIsSharedAtOnce(t *testing.T) {
	dbs, address := newShards(t, 2)
	if err := dbs[0].Commit(trial("job-0", "conv", 1)).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	other, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	if _, err := other.Exec(t.Context(), "SELECT pg_advisory_lock_shared($1)", postgres.CommonLock); err != nil {
		t.Fatal(err)
	}
	if err := dbs[1].Commit(trial("job-1", "conv", 2)).Wait(t.Context()); err != nil { // it would otherwise block
		t.Fatal(err)
	}
	begins := dbs[1].Commit(trial("job-1", "matmul", 3))
	for waits := false; !waits; {
		err := other.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)").Scan(&waits)
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := other.Exec(t.Context(), "SELECT pg_advisory_unlock_shared($1)", postgres.CommonLock); err != nil {
		t.Fatal(err)
	}
	if err := begins.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestShardsShareTheRecords lets trackers of different shards add to the same groups, including new ones, during an
// import and pruning. Each record must exist once, with the correct best.
func TestShardsShareTheRecords(t *testing.T) {
	const shards, workloads = 3, 5
	rounds := storetest.QuickOr(60, 120)
	dbs, _ := newShards(t, shards)
	var all sync.WaitGroup
	for shard, db := range dbs {
		all.Go(func() {
			var last *records.Pending
			for round := range rounds {
				n := round*shards + shard + 1
				last = db.Commit(trial(fmt.Sprint("job-", shard), fmt.Sprint("conv ", n%workloads), n))
				if round%40 == 20 {
					w := &records.Write{}
					w.SuspectBests("board-1", storetest.Record("cpu", "conv", 1, 1).GetMeasurement().GetAt().AsTime(), "it drifted")
					last = db.Commit(w)
				}
				if round%10 == 0 {
					if err := last.Wait(t.Context()); err != nil {
						t.Error(err)
						return
					}
				}
			}
			if err := last.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			storetest.Add(t, db, storetest.Record("cpu", fmt.Sprint("added ", shard%2), int64(shard+1), 1))
			w := &records.Write{}
			w.PutNew(fmt.Sprint("job-", shard), records.RequestKey("ana", fmt.Sprint("r", shard)), &records.NewJob{
				Spec: []byte{}, Tasks: []*tilthv1.TaskSpec{
					{Workload: []byte("a"), WorkloadDigest: records.Digest([]byte("a"))}, {Workload: []byte("b"), WorkloadDigest: records.Digest([]byte("b"))},
				},
			})
			if err := db.Commit(w).Wait(t.Context()); err != nil {
				t.Error(err)
			}
			if _, _, err := db.Prune(t.Context(), records.PruneOptions{KeepRecent: 1 << 20}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, db := range dbs {
		seen := map[string]int{}
		fastest := map[string]float64{}
		for _, r := range storetest.List(t, db, "", "") {
			m := r.GetMeasurement()
			seen[m.GetCandidate().GetDigest()+r.GetWorkloadDigest()]++
			if best, is := fastest[r.GetWorkloadDigest()]; !is || m.GetLatencySeconds() < best {
				fastest[r.GetWorkloadDigest()] = m.GetLatencySeconds()
			}
		}
		if want := shards*rounds + shards; len(seen) != want {
			t.Errorf("there are %d records, want %d", len(seen), want)
		}
		for what, n := range seen {
			if n != 1 {
				t.Errorf("%s is there %d times", what, n)
			}
		}
		for workload, want := range fastest {
			best, err := db.BestAllowed("cpu", workload, "")
			if err != nil || best.GetMeasurement().GetLatencySeconds() != want {
				t.Errorf("the best of %s is %v, %v, want %v", workload, best.GetMeasurement().GetLatencySeconds(), err, want)
			}
		}
	}
}

// TestImportIsSetAsideWhileOthersHaveTheRecords is a regression test: each staged chunk of an import and the other
// shards waited for each other's locks on the records.
func TestImportIsSetAsideWhileOthersHaveTheRecords(t *testing.T) {
	address := databases.Borrow(t)
	var dbs [2]*postgres.DB
	for shard := range dbs {
		db, err := postgres.Open(address, postgres.Options{Shard: shard, Shards: len(dbs)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		dbs[shard] = db
	}
	if err := dbs[0].Commit(trial("job-0", "conv", 1)).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, address)
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "BEGIN; SELECT FROM tilth.groups FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	waits := dbs[0].Commit(trial("job-0", "conv", 2)) // with its share of the records locked
	eventually(t, "a shard waits for a group", func() (is bool) {
		ask(t, address, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')", &is)
		return is
	})
	errCut := errors.New("the line was cut")
	imported, n := make(chan error, 1), int64(0)
	go func() {
		_, _, err := dbs[1].Import(t.Context(), func() (*tilthv1.Record, error) {
			if n++; n > 600 { // after a chunk
				return nil, errCut
			}
			return storetest.Record("cpu", "imported", n, 1), nil
		})
		imported <- err
	}()
	if err := await(t, imported); !errors.Is(err, errCut) {
		t.Errorf("the import came to %v", err)
	}
	var left int
	if ask(t, address, "SELECT count(*) FROM tilth.import_chunks", &left); left > 0 {
		t.Errorf("it left %d chunks", left)
	}
	if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := waits.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestShardThatIsTakenOverWritesNothing(t *testing.T) {
	dbs, address := newShards(t, 2)
	failed := make(chan error, 1)
	dbs[1].OnFailed(func(why error) { failed <- why })
	do(t, address, "UPDATE tilth.tracker SET epoch = epoch + 1 WHERE shard = 1")
	if err := dbs[1].Commit(numbered(1)).Wait(t.Context()); !errors.Is(err, records.ErrTakenOver) {
		t.Errorf("the commit came to %v", err)
	}
	if err := await(t, failed); !errors.Is(err, records.ErrTakenOver) {
		t.Errorf("it failed with %v", err)
	}
	if err := dbs[0].Commit(numbered(1)).Wait(t.Context()); err != nil {
		t.Errorf("the other shard: %v", err)
	}
	if n := stored(t, dbs[0]); n != 1 {
		t.Errorf("there are %d writes", n)
	}
}

// TestShardThatIsTakenOverConfirmsNothing is a regression test: a process that had lost its shard without knowing
// confirmed changes without effect. Only the present owner may confirm them.
func TestShardThatIsTakenOverConfirmsNothing(t *testing.T) {
	dbs, address := newShards(t, 2)
	confirmed := func() *records.Write {
		w := &records.Write{}
		w.Confirms = true
		return w
	}
	for _, db := range dbs {
		if err := db.Commit(confirmed()).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	do(t, address, "UPDATE tilth.tracker SET epoch = epoch + 1 WHERE shard = 1")
	if err := dbs[1].Commit(confirmed()).Wait(t.Context()); !errors.Is(err, records.ErrTakenOver) {
		t.Errorf("nothing was confirmed, and it came to %v", err)
	}
	if err := dbs[0].Commit(confirmed()).Wait(t.Context()); err != nil {
		t.Errorf("the other shard: %v", err)
	}
}

func TestDatabaseKeepsItsNumberOfShards(t *testing.T) {
	db, address := fresh(t)
	if err := db.Commit(numbered(1)).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	db.Close()
	for _, shards := range []int{4, 4} { // a database of one shard gets more
		db, err := postgres.Open(address, postgres.Options{Shards: shards})
		if err != nil {
			t.Fatal(err)
		}
		if n := stored(t, db); n != 1 {
			t.Errorf("there are %d writes", n)
		}
		db.Close()
	}
	for _, shards := range []int{0, 1, 3, 5} {
		if db, err := postgres.Open(address, postgres.Options{Shards: shards}); !errors.Is(err, records.ErrShards) {
			t.Errorf("as %d shards: %v", shards, err)
			if err == nil {
				db.Close()
			}
		}
	}
	if _, err := postgres.OpenTarget(t.Context(), address, postgres.Options{}); !errors.Is(err, records.ErrNotEmpty) {
		t.Errorf("a database of several shards is converted into: %v", err)
	}
}

func TestReluctantProcessesYieldShards(t *testing.T) {
	dbs, address := newShards(t, 2)
	take := func(reluctant bool) (<-chan *postgres.DB, <-chan struct{}) {
		took, waits := make(chan *postgres.DB, 1), make(chan struct{})
		go func() {
			db, err := postgres.Await(t.Context(), address, postgres.Options{
				Shard: 1, Shards: 2, Reluctant: func(ctx context.Context) bool { return reluctant },
			}, func() error {
				close(waits)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			took <- db
		}()
		return took, waits
	}
	reluctant, waits := take(true)
	await(t, waits)
	willing, waits := take(false)
	await(t, waits)
	eventually(t, "both have seen that the shard is taken", func() bool {
		var looks int
		ask(t, address, "SELECT looks FROM tilth.heartbeat WHERE shard = 1", &looks)
		return looks >= 8 // two per second and waiter
	})
	dbs[1].Close()
	first := await(t, willing)
	select {
	case <-reluctant:
		t.Error("who has its share took the shard")
	default:
	}
	first.Close()
	await(t, reluctant).Close() // no other process wants it
}

// TestShardWhoseNextTrackerDiesAtOnceIsTakenBackSoon is a regression test: a shard was reclaimed late if its new
// owner died before its first heartbeat, because its lock had not been observed.
func TestShardWhoseNextTrackerDiesAtOnceIsTakenBackSoon(t *testing.T) {
	dbs, address := newShards(t, 2)
	dbs[1].Close()
	do(t, address, "UPDATE tilth.tracker SET epoch = epoch + 1 WHERE shard = 1")
	looks := func() (n int) {
		ask(t, address, "SELECT looks FROM tilth.heartbeat WHERE shard = 1", &n)
		return n
	}
	before := looks()
	back, err := postgres.Await(t.Context(), address, postgres.Options{
		Shard: 1, Shards: 2, Reluctant: func(context.Context) bool { return true },
	}, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if n := looks() - before; n > 5 { // four for other reasons
		t.Errorf("it was taken after %d looks", n)
	}
	if err := back.Commit(numbered(1)).Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMembersSeeEachOther(t *testing.T) {
	_, address := newShards(t, 2)
	meet := func(m *postgres.Members, own records.Member, want ...records.Member) {
		t.Helper()
		others, err := m.Heartbeat(t.Context(), own)
		if err != nil || fmt.Sprint(others) != fmt.Sprint(want) {
			t.Errorf("the others are %v, %v, want %v", others, err, want)
		}
	}
	var members []*postgres.Members
	for _, id := range []string{"a", "b"} {
		m, err := postgres.NewMembers(address, id)
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, m)
		t.Cleanup(m.Leave)
	}
	secure := records.Member{Address: "tracker1.example.com:9190", Certificate: []byte("digest"), Host: []byte("host")}
	meet(members[0], secure)
	meet(members[1], records.Member{Address: ":9190"}, secure)
	meet(members[0], secure, records.Member{Address: "127.0.0.1:9190"}) // the database is on this machine
	meet(members[1], records.Member{Address: "unix:/run/tilth"}, secure)
	meet(members[0], secure, records.Member{Address: "unix:/run/tilth"})
	members[0].Leave()
	meet(members[1], records.Member{})
}

// TestMembersSeeEachOtherDespiteASilentServer checks the member list when the database's first server is or becomes
// silent.
func TestMembersSeeEachOtherDespiteASilentServer(t *testing.T) {
	t.Parallel() // mostly waits
	_, address := newShards(t, 2)
	way := newLine(t, server)
	member := func(address, id string) *postgres.Members {
		t.Helper()
		m, err := postgres.NewMembers(address, id)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Leave)
		return m
	}
	other := member(address, "other")
	meets := func(m *postgres.Members) {
		t.Helper()
		eventually(t, "members meet", func() bool {
			if _, err := other.Heartbeat(t.Context(), records.Member{Address: "other:1"}); err != nil {
				t.Fatal(err)
			}
			others, err := m.Heartbeat(t.Context(), records.Member{Address: "one:1"})
			return err == nil && slices.ContainsFunc(others, func(o records.Member) bool { return o.Address == "other:1" })
		})
	}
	both := strings.Replace(address, server.Folder(), way.folder+","+server.Folder(), 1)
	first, second := member(both, "first"), member(both, "second")
	meets(first)
	way.lose(toServer)
	way.lose(toClient)
	meets(first)  // its connection is silent
	meets(second) // the second server has no member yet
}

// TestTakeoverEndsTheTransactionOfTheShard checks that a suspended tracker with a lock on the records only blocks
// others until its shard is taken over.
func TestTakeoverEndsTheTransactionOfTheShard(t *testing.T) {
	dbs, address := newShards(t, 2)
	dbs[1].Close()
	do(t, address, "UPDATE tilth.heartbeat SET beats = 5 WHERE shard = 1")
	release := hold(t, address, fmt.Sprintf("SELECT pg_advisory_lock(%d), pg_advisory_xact_lock(%d)", 1<<40|0x74696c7468, 1<<56|0x74696c7468))
	defer release()
	dbs[0].Close()
	first, err := postgres.Open(address, postgres.Options{Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	pending := first.Commit(numbered(1))
	taken := make(chan error, 1)
	go func() {
		second, err := postgres.Await(t.Context(), address, postgres.Options{Shard: 1, Shards: 2}, func() error { return nil })
		if err == nil {
			err = second.Close()
		}
		taken <- err
	}()
	if err := await(t, taken); err != nil {
		t.Fatal(err)
	}
	if err := pending.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if n := stored(t, first); n != 1 {
		t.Errorf("there are %d writes", n)
	}
}

// TestShardSeesTheBestRecordOfAnother because a tracker only caches the best records that it found itself.
func TestShardSeesTheBestRecordOfAnother(t *testing.T) {
	dbs, _ := newShards(t, 2)
	add := func(shard int, second int64, latency float64, more func(*records.Write)) {
		t.Helper()
		w := &records.Write{}
		w.AppendTrials("job", "cpu", &tilthv1.TaskSpec{WorkloadDigest: records.Digest([]byte("conv"))}, []*tilthv1.JobEvent{{Sequence: uint64(second), Event: &tilthv1.JobEvent_Trial{
			Trial: &tilthv1.TrialRecorded{Measurement: storetest.Record("cpu", "conv", second, latency).GetMeasurement(), BatchId: "job.0"},
		}}})
		more(w)
		if err := dbs[shard].Commit(w).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(*records.Write) {}
	submission := func(w *records.Write) {
		w.PutNew("job", records.RequestKey("ana", "r"), &records.NewJob{Spec: []byte{}})
	}
	add(0, 1, 3, nothing)
	add(1, 2, 1, nothing)
	add(0, 3, 2, submission) // exclusive access to the records
	add(1, 4, 2.5, nothing)
	add(0, 5, 2.2, nothing)
	for shard, db := range dbs {
		best, err := db.BestAllowed("cpu", records.Digest([]byte("conv")), "")
		if err != nil || best.GetMeasurement().GetLatencySeconds() != 1 {
			t.Errorf("shard %d has the best %v, %v", shard, best.GetMeasurement().GetLatencySeconds(), err)
		}
	}
}
