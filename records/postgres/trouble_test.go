package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// TestSlowNetworkLosesNothing checks that a slow network only slows a store down, because waiting writes are
// batched.
func TestSlowNetworkLosesNothing(t *testing.T) {
	address := databases.Borrow(t)
	line := newLine(t, server)
	db := openedSoon(t, line.through(address))
	line.slow(20 * time.Millisecond)
	settled(t, db, write(db, 1, 500))
	if n := stored(t, db); n != 500 {
		t.Errorf("%d writes are stored", n)
	}
	// Too slow for any transaction to finish in time: it is retried, and stored once.
	away := make(chan error, 100)
	db.OnUnavailable(func(why error) { away <- why })
	line.slow(impatience)
	waiting := write(db, 501, 10)
	if why := await(t, away); !errors.Is(why, records.ErrAway) {
		t.Errorf("the server is away for %v", why)
	}
	line.slow(0)
	settled(t, db, waiting)
	if n := stored(t, db); n != 510 {
		t.Errorf("%d writes are stored", n)
	}
}

// TestOpenJobsAndBatchesAreReadInFewRoundTrips is a regression test: opening took a round trip for each batch and up
// to five for each job. With thousands of them on a slow network, no tracker could open the database again.
func TestOpenJobsAndBatchesAreReadInFewRoundTrips(t *testing.T) {
	address := databases.Borrow(t)
	line := newLine(t, server)
	db := opened(t, line.through(address))
	const n = 600
	id := func(i int) string { return fmt.Sprintf("job-%08d", i) }
	w := &records.Write{}
	for i := range n {
		spec := &tilthv1.JobSpec{Name: id(i), Tasks: []*tilthv1.TaskSpec{{Name: "a"}, {Name: "b"}}}
		w.PutNew(id(i), records.RequestKey("ana", id(i)), records.EncodeJob(spec, []*tilthv1.TaskProgress{{Trials: 1}, {Trials: 2}}))
		w.PutJob(&storev1.JobRow{Job: &tilthv1.Job{Id: id(i), State: tilthv1.JobState_JOB_STATE_RUNNING}, Proposals: 5})
		proposed := &tilthv1.BatchProposed{Candidates: []*tilthv1.Candidate{{Digest: id(i)}}}
		w.AppendEvent(id(i), &tilthv1.JobEvent{Sequence: 7, Event: &tilthv1.JobEvent_Proposed{Proposed: proposed}})
		w.AppendEvent(id(i), &tilthv1.JobEvent{Sequence: 8})
		w.PutBatch(id(i)+".1", &storev1.BatchRow{JobId: id(i), EventSequence: 7})
		w.CloseBatch(id(i)+".0", &storev1.BatchRow{JobId: id(i)})
	}
	if err := db.Commit(w).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := line.questions()
	jobs, err := db.OpenJobs()
	if err != nil || len(jobs) != n {
		t.Fatalf("%d jobs are open, %v", len(jobs), err)
	}
	batches, err := db.OpenBatches()
	if err != nil || len(batches) != n {
		t.Fatalf("%d batches are under way, %v", len(batches), err)
	}
	closed, proposals, err := db.ClosedJobs()
	if err != nil || len(closed) != n || len(proposals) != n {
		t.Fatalf("%d jobs have closed batches, %v", len(closed), err)
	}
	asked := line.questions() - before
	for i := range n {
		j, b := jobs[i], batches[i]
		if j.Damage != nil || j.ID != id(i) || j.Spec.GetName() != id(i) || j.LastSequence != 8 || len(j.Progress) != 2 || j.Progress[1].GetTrials() != 2 {
			t.Fatalf("job %d is %v", i, j)
		}
		if b.Damage != nil || b.ID != id(i)+".1" || len(b.Candidates) != 1 || b.Candidates[0].GetDigest() != id(i) {
			t.Fatalf("batch %d is %v", i, b)
		}
		if closed[i] != id(i) || proposals[i] != 5 {
			t.Fatalf("of job %s there are %d proposals", closed[i], proposals[i])
		}
	}
	if asked > n/4 { // including the store's own queries
		t.Errorf("the server was asked %d times", asked)
	}
}

// smallDisk mounts a 128 MiB file system.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can make a small file system")
	}
	folder, err := os.MkdirTemp("", "pgdisk")
	if err == nil {
		t.Cleanup(func() { os.Remove(folder) })
		err = os.Chmod(folder, 0o755) // the server runs as another user
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=128m,mode=755"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, 0); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// TestServerWithoutRoomLosesNothing checks that writes wait until a full disk has space, whether the server reports
// errors or crashes.
func TestServerWithoutRoomLosesNothing(t *testing.T) {
	disk := smallDisk(t)
	server, err := pgserver.NewAt(pgserver.Place{Folder: disk})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	address, err := server.Database()
	if err != nil {
		t.Fatal(err)
	}
	db := openedSoon(t, address)
	settled(t, db, write(db, 1, 10))
	away := make(chan error, 100)
	db.OnUnavailable(func(why error) { away <- why })
	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)
	waiting := write(db, 11, 5000)
	if why := await(t, away); !errors.Is(why, records.ErrAway) {
		t.Errorf("the server is away for %v", why)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server is back", func() bool {
		if server.Ended() { // it cannot continue with a full log
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
		}
		return db.Unavailable() == nil
	})
	settled(t, db, waiting)
	if n := stored(t, db); n != 5010 {
		t.Errorf("%d writes are stored", n)
	}
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	chunk := make([]byte, 1<<16)
	for ; err == nil; _, err = f.Write(chunk) {
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}
