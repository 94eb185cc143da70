package tracker_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

var (
	shardFaults = flag.Int("shard-faults", 5, "how many faults befall trackers that share a database")
	shardSeed   = flag.Uint64("shard-seed", 1, "which faults")
)

// TestTrackersThatShareADatabaseOutliveFaults repeatedly kills, suspends or stops three trackers of one database
// while owners of all shards submit jobs. Every job must end, with each of its trials recorded once.
func TestTrackersThatShareADatabaseOutliveFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: five faults, and jobs of four shards meanwhile")
	}
	t.Parallel() // mostly waits
	database := pgserver.DatabaseForTest(t)
	var artifacts []string
	for range someShards {
		artifacts = append(artifacts, t.TempDir())
	}
	var rivals []*rival
	addresses := ""
	for range 3 {
		r := newRivalOf(t, database, someShards, artifacts...)
		rivals = append(rivals, r)
		addresses += r.address() + ","
	}
	conn, err := agent.Dial(addresses[:len(addresses)-1])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute+time.Duration(*shardFaults)*30*time.Second) // detects a hang
	defer cancel()
	w := &workers{conn: conn, dir: t.TempDir()}
	uploader := artifact.NewClient(conn, nil, w.logger())
	w.upload = func(ctx context.Context, path string) (*tilthv1.ArtifactRef, error) {
		return uploader.Upload(ctx, "candidates", path)
	}
	living, stopAgents := context.WithCancel(ctx)
	var agents, owners sync.WaitGroup
	defer agents.Wait()
	defer stopAgents()
	runWorkers(living, t, &agents, w)
	over := make(chan struct{})
	var jobs atomic.Int64
	for shard := range someShards {
		owners.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-over:
					return
				default:
				}
				oneJob(ctx, t, w, ownerOf(shard), fmt.Sprint("r", n))
				jobs.Add(1)
			}
		})
	}
	random := rand.New(rand.NewPCG(*shardSeed, 0))
	for range *shardFaults {
		time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond) // fail at a random moment
		rivals[random.IntN(len(rivals))].fail(random)
	}
	close(over)
	owners.Wait()
	stream, err := tilthv1.NewRecordServiceClient(conn).ListRecords(ctx, &tilthv1.ListRecordsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	recorded := int64(0)
	for {
		if _, err = stream.Recv(); err != nil {
			break
		}
		recorded++
	}
	if want := jobs.Load() * int64(killBatches()*killBatchSize()); !errors.Is(err, io.EOF) || recorded != want {
		t.Errorf("there are %d records of %d jobs, want %d: %v", recorded, jobs.Load(), want, err)
	}
}

// oneJob submits an owner's job and follows it to its end.
func oneJob(ctx context.Context, t *testing.T, w *workers, owner, request string) {
	s := spec("conv")
	s.Owner = owner
	var id string
	repeat(ctx, t, func(ctx context.Context) error {
		submitted, err := tilthv1.NewJobServiceClient(w.conn).SubmitJob(ctx, &tilthv1.SubmitJobRequest{RequestId: request, Spec: s})
		id = submitted.GetJob().GetId()
		return err
	})
	var seen []*tilthv1.JobEvent
	err := agent.Watch(ctx, w.conn, w.logger(), &tilthv1.WatchJobRequest{JobId: id}, func(e *tilthv1.JobEvent) error {
		seen = append(seen, e)
		return nil
	}, nil)
	if err != nil {
		t.Errorf("job %s: %v", id, err)
		return
	}
	check(t, seen)
}

// fail makes a tracker fail in a random way, and return after a while.
func (r *rival) fail(random *rand.Rand) {
	r.Helper()
	away := time.Duration(random.IntN(9000)) * time.Millisecond
	switch random.IntN(3) {
	case 0:
		r.Logf("a tracker is killed for %v", away)
		r.kill()
		time.Sleep(away)
		r.start()
	case 1:
		r.Logf("a tracker stands still for %v", away)
		r.signal(syscall.SIGSTOP)
		time.Sleep(away)
		r.signal(syscall.SIGCONT)
	case 2:
		r.Logf("a tracker ends, and is away for %v", away)
		r.signal(syscall.SIGTERM)
		_ = r.cmd.Wait()
		time.Sleep(away)
		r.start()
	}
}
