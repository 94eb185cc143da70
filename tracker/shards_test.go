package tracker_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records/postgres"
	"github.com/tilth-dev/tilth/tracker"
)

const someShards = 4

// newRivals returns two trackers of a database after they have distributed its shards.
func newRivals(t *testing.T) (a, b *rival) {
	t.Helper()
	database := pgserver.DatabaseForTest(t)
	var artifacts []string
	for range someShards {
		artifacts = append(artifacts, t.TempDir())
	}
	a = newRivalOf(t, database, someShards, artifacts...)
	a.has(someShards)
	b = newRivalOf(t, database, someShards, artifacts...)
	b.has(someShards / 2)
	a.has(someShards / 2)
	return a, b
}

// has waits until the tracker serves the given number of shards.
func (r *rival) has(want int) {
	r.Helper()
	conn, err := grpc.NewClient(r.address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		r.Fatal(err)
	}
	defer conn.Close()
	jobs := tilthv1.NewJobServiceClient(conn)
	var said error
	for end := time.Now().Add(10 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		count := 0
		for shard := range someShards {
			ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(r.Context(), wire.ShardHeader, strconv.Itoa(shard)), time.Second)
			_, err := jobs.ListOwners(ctx, &tilthv1.ListOwnersRequest{})
			cancel()
			if err == nil {
				count++
			} else {
				said = err
			}
		}
		if count == want {
			return
		}
		if time.Now().After(end) {
			r.Fatalf("the tracker has %d shards, not %d: %v", count, want, said)
		}
	}
}

// ownerOf returns an owner whose jobs belong to a shard.
func ownerOf(shard int) string {
	for i := 0; ; i++ {
		if owner := fmt.Sprint("team-", i); wire.ShardOfOwner(owner, someShards) == shard {
			return owner
		}
	}
}

// TestJobsOfAllShardsGoOnWhenTrackersFail runs agents with one connection to two trackers that share a database. It
// kills one tracker and stops the other during the jobs. Each time the other one must take over all shards quickly,
// without lost or repeated trials. Jobs may only pause briefly.
func TestJobsOfAllShardsGoOnWhenTrackersFail(t *testing.T) {
	t.Parallel() // mostly waits
	a, b := newRivals(t)
	jobs := newWatchedJobs(t, b.address()+","+a.address())
	jobs.submit("r0")
	jobs.reach(50)
	began := time.Now()
	a.kill()
	b.has(someShards)
	t.Logf("taken over %v after a kill", time.Since(began))
	a.start()
	a.has(someShards / 2)
	b.has(someShards / 2)
	before := jobs.events.Load()
	jobs.submit("r1")
	jobs.reach(before + 100)
	began = time.Now()
	b.signal(syscall.SIGSTOP)
	a.has(someShards)
	t.Logf("taken over %v after a stop", time.Since(began))
	b.signal(syscall.SIGCONT)
	b.refusesShards()
	jobs.check()
	listed, err := tilthv1.NewJobServiceClient(jobs.workers.conn).ListJobs(jobs.ctx, &tilthv1.ListJobsRequest{})
	if err != nil || len(listed.GetJobs()) != len(jobs.all) {
		t.Errorf("%d jobs are listed, %v", len(listed.GetJobs()), err)
	}
}

// TestUploadReachesAllShardsThoughATrackerIsStopped checks that a file uploaded before its job's shard is known
// reaches all shards. If a tracker is stopped meanwhile, its successor receives the file later.
func TestUploadReachesAllShardsThoughATrackerIsStopped(t *testing.T) {
	t.Parallel() // mostly waits
	a, b := newRivals(t)
	conn, err := agent.Dial(b.address() + "," + a.address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	files := artifact.NewClient(conn, nil, slog.New(slog.DiscardHandler))
	upload := func(text string) string {
		path := filepath.Join(t.TempDir(), "package")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		ref, err := files.Upload(t.Context(), "package", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d bytes were uploaded in %v", len(text), time.Since(began))
		return ref.GetDigest()
	}
	upload("while both serve")
	b.signal(syscall.SIGSTOP)
	for _, digest := range []string{upload("small"), upload(strings.Repeat("large", 2<<20))} {
		for shard := range someShards {
			ctx := metadata.AppendToOutgoingContext(t.Context(), wire.ShardHeader, strconv.Itoa(shard))
			single, err := grpc.NewClient(a.address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			stat, err := tilthv1.NewArtifactServiceClient(single).StatArtifact(ctx, &tilthv1.StatArtifactRequest{Digest: digest})
			if err != nil || !stat.GetComplete() {
				t.Errorf("shard %d has %v, %v", shard, stat, err)
			}
			single.Close()
		}
	}
}

// TestTrackerOfShardsOutlivesADatabaseThatRefusesIt is a regression test: a standby for a shard exited and dropped
// its own shards if the database went away during a takeover.
func TestTrackerOfShardsOutlivesADatabaseThatRefusesIt(t *testing.T) {
	t.Parallel() // mostly waits
	a, b := newRivals(t)
	tried, allow := refuseTakeovers(t, b.database)
	a.kill()
	tried(someShards)
	b.has(someShards / 2)
	allow()
	b.has(someShards)
}

// watchedJobs runs jobs of owners of all shards until the test ends, and collects their events.
type watchedJobs struct {
	*testing.T
	ctx     context.Context
	workers *workers
	watches sync.WaitGroup
	events  atomic.Int64
	all     []*watchedJob
}

// watchedJob is a job with the events received.
type watchedJob struct {
	seen   []*tilthv1.JobEvent
	failed error
}

// newWatchedJobs starts agents for trackers at some addresses.
func newWatchedJobs(t *testing.T, addresses string) *watchedJobs {
	t.Helper()
	conn, err := agent.Dial(addresses)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // detects a hang
	j := &watchedJobs{T: t, ctx: ctx, workers: &workers{conn: conn, dir: t.TempDir()}}
	uploader := artifact.NewClient(conn, nil, j.workers.logger())
	j.workers.upload = func(ctx context.Context, path string) (*tilthv1.ArtifactRef, error) {
		return uploader.Upload(ctx, "candidates", path)
	}
	var agents sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		agents.Wait()
		j.watches.Wait()
		conn.Close()
	})
	runWorkers(ctx, t, &agents, j.workers)
	return j
}

// submit submits a job for an owner of each shard.
func (j *watchedJobs) submit(request string) {
	j.Helper()
	for shard := range someShards {
		s := spec("conv")
		s.Owner = ownerOf(shard)
		submitted, err := tilthv1.NewJobServiceClient(j.workers.conn).SubmitJob(j.ctx, &tilthv1.SubmitJobRequest{RequestId: request, Spec: s})
		if err != nil {
			j.Fatal(err)
		}
		id := submitted.GetJob().GetId()
		if wire.ShardOf(id) != shard {
			j.Errorf("the job of %s is %s", s.GetOwner(), id)
		}
		one := &watchedJob{}
		j.all = append(j.all, one)
		j.watches.Go(func() {
			one.failed = agent.Watch(j.ctx, j.workers.conn, j.workers.logger(), &tilthv1.WatchJobRequest{JobId: id}, func(e *tilthv1.JobEvent) error {
				one.seen = append(one.seen, e)
				j.events.Add(1)
				return nil
			}, nil)
		})
	}
}

// reach waits until n events have arrived.
func (j *watchedJobs) reach(n int64) {
	j.Helper()
	for j.events.Load() < n {
		if j.ctx.Err() != nil {
			j.Fatalf("only %d events came", j.events.Load())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// check waits until the jobs end and checks the events of each.
func (j *watchedJobs) check() {
	j.Helper()
	j.watches.Wait()
	for n, one := range j.all {
		if one.failed != nil {
			j.Fatalf("job %d: %v", n, one.failed)
		}
		check(j.T, one.seen)
	}
}

// refusesShards checks that a suspended tracker that lost its shards changes nothing of them until it has them again.
func (r *rival) refusesShards() {
	r.Helper()
	conn, err := grpc.NewClient(r.address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		r.Fatal(err)
	}
	defer conn.Close()
	for shard := range someShards {
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(r.Context(), wire.ShardHeader, strconv.Itoa(shard)), 10*time.Minute)
		s := spec("conv")
		s.Owner = ownerOf(shard)
		_, err := tilthv1.NewJobServiceClient(conn).SubmitJob(ctx, &tilthv1.SubmitJobRequest{RequestId: "r0", Spec: s})
		cancel()
		if err != nil && status.Code(err) != codes.Unavailable { // at most a repeated submission succeeds
			r.Errorf("a tracker that was taken over submits a job: %v", err)
		}
	}
}

// TestPageShowsTheJobOfAnotherTracker checks that pages show jobs of other trackers as stored.
func TestPageShowsTheJobOfAnotherTracker(t *testing.T) {
	address := pgserver.DatabaseForTest(t)
	open := func(shard int) *tracker.Tracker {
		t.Helper()
		store := must[*postgres.DB](t)(postgres.Open(address, postgres.Options{Shard: shard, Shards: 2}))
		t.Cleanup(func() { store.Close() })
		return must[*tracker.Tracker](t)(tracker.New(tracker.Config{Store: store, ArtifactsDir: t.TempDir(), Shard: tracker.Shard{Index: shard, Count: 2}}))
	}
	here, other := open(0), open(1)
	s := spec("conv")
	for s.Owner = "team"; wire.ShardOfOwner(s.GetOwner(), 2) != 1; {
		s.Owner += "x"
	}
	job := must[*tilthv1.SubmitJobResponse](t)(other.SubmitJob(t.Context(), &tilthv1.SubmitJobRequest{RequestId: "r", Spec: s})).GetJob()
	host := tracker.NewHost(tracker.HostConfig{Shards: 2, Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
	host.Add(here, prometheus.NewRegistry())
	web := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	rpc := must[net.Listener](t)(tracker.Listen("unix:" + filepath.Join(t.TempDir(), "sock")))
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- host.Serve(ctx, rpc, web) }()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	for _, path := range []string{"/jobs", "/jobs/" + job.GetId(), "/jobs/" + job.GetId() + "/tasks/0"} {
		answer, err := http.Get("http://" + web.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(body), job.GetId()) {
			t.Errorf("%s is %s, %v", path, answer.Status, err)
		}
	}
}
