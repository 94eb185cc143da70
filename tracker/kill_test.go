package tracker_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/artifact"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

const trackerProcessEnv = "TILTH_TEST_TRACKER"

// trackerProcess runs the test binary as a tracker on a folder until it is killed.
func trackerProcess(dir string) {
	db, err := bolt.Open(filepath.Join(dir, "records.db"), bolt.Options{LockTimeout: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	tr, err := tracker.New(tracker.Config{Store: db, ArtifactsDir: filepath.Join(dir, "artifacts"), HeartbeatInterval: 50 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	_ = os.Remove(filepath.Join(dir, "sock"))
	lis, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	fmt.Println(tr.Serve(context.Background(), lis, nil))
	os.Exit(1)
}

// process is a tracker in a separate process.
type process struct {
	*testing.T
	dir string
	cmd *exec.Cmd
}

func (p *process) start() {
	p.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), trackerProcessEnv+"="+p.dir)
	out := must[interface {
		Read([]byte) (int, error)
		Close() error
	}](p)(p.cmd.StdoutPipe())
	if err := p.cmd.Start(); err != nil {
		p.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		p.Fatalf("the tracker said %q, %v", line, err)
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// killBatches and killBatchSize determine the work of a job. They are smaller in the quick tier.
func killBatches() int   { return quickOr(12, 40) }
func killBatchSize() int { return quickOr(4, 5) }

// quickOr returns quick in the quick tier, else full.
func quickOr(quick, full int) int {
	if testing.Short() {
		return quick
	}
	return full
}

// TestKillNineAtAnyMomentLosesAndRepeatsNothing runs a job with real agents while the tracker is killed and restarted
// repeatedly. The job must end with every trial recorded once, and without gaps or repetitions in the log.
func TestKillNineAtAnyMomentLosesAndRepeatsNothing(t *testing.T) {
	p := &process{T: t, dir: t.TempDir()}
	p.start()
	defer func() { p.kill() }()
	conn, err := agent.Dial("unix:" + filepath.Join(p.dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The timeout detects hangs; the run takes a few seconds.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	jobs := tilthv1.NewJobServiceClient(conn)
	var job *tilthv1.Job
	repeat(ctx, t, func(ctx context.Context) error {
		r, err := jobs.SubmitJob(ctx, &tilthv1.SubmitJobRequest{RequestId: "r", Spec: spec("conv")})
		job = r.GetJob()
		return err
	})
	living, stopAgents := context.WithCancel(ctx)
	var agents sync.WaitGroup
	defer agents.Wait()
	defer stopAgents()
	w := &workers{conn: conn}
	uploader := artifact.NewClient(conn, nil, w.logger())
	w.upload = func(ctx context.Context, path string) (*tilthv1.ArtifactRef, error) {
		return uploader.Upload(ctx, "candidates", path)
	}
	w.dir = t.TempDir()
	runWorkers(living, t, &agents, w)
	events := make(chan *tilthv1.JobEvent, 10000)
	agents.Go(func() {
		defer close(events)
		err := agent.Watch(ctx, conn, w.logger(), &tilthv1.WatchJobRequest{JobId: job.GetId()}, func(e *tilthv1.JobEvent) error {
			events <- e
			return nil
		}, nil)
		if err != nil {
			t.Errorf("watch: %v", err)
		}
	})
	seen := p.killWhile(events)
	check(t, seen)
}

// runWorkers runs an agent of each kind, and a second runner, until ctx ends.
func runWorkers(ctx context.Context, t *testing.T, agents *sync.WaitGroup, w *workers) {
	for name, kind := range map[string]tilthv1.AgentKind{
		"tuner": tilthv1.AgentKind_AGENT_KIND_TUNER, "builder": tilthv1.AgentKind_AGENT_KIND_BUILDER,
		"runner-1": tilthv1.AgentKind_AGENT_KIND_RUNNER, "runner-2": tilthv1.AgentKind_AGENT_KIND_RUNNER,
	} {
		agents.Go(func() {
			err := agent.Run(ctx, agent.Config{
				Conn: w.conn, Spec: agentSpec(name, kind), Handler: agent.HandlerFunc(w.handle), Slots: 2,
				FirstRetry: time.Millisecond, MaxRetry: 50 * time.Millisecond, DrainGrace: time.Second,
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// killWhile reads the job's events to the end, and kills the tracker at intervals.
func (p *process) killWhile(events <-chan *tilthv1.JobEvent) (seen []*tilthv1.JobEvent) {
	random := rand.New(rand.NewPCG(1, 2))
	next := 3
	for e := range events {
		seen = append(seen, e)
		if len(seen) >= next {
			p.kill()
			p.start()
			next = len(seen) + 10 + random.IntN(20)
		}
	}
	return seen
}

func check(t *testing.T, seen []*tilthv1.JobEvent) {
	t.Helper()
	trials := map[uint32]bool{}
	for i, e := range seen {
		if e.GetSequence() != uint64(i+1) {
			t.Fatalf("event %d has sequence %d", i+1, e.GetSequence())
		}
		if tr := e.GetTrial(); tr != nil {
			n := tr.GetMeasurement().GetCandidate().GetTrial()
			if trials[n] {
				t.Errorf("trial %d is recorded twice", n)
			}
			trials[n] = true
		}
		if e.GetDeadLetter() != nil {
			t.Errorf("a batch was given up: %v", e)
		}
	}
	if len(trials) != killBatches()*killBatchSize() {
		t.Errorf("%d trials are recorded, want %d", len(trials), killBatches()*killBatchSize())
	}
	if last := seen[len(seen)-1].GetState(); last.GetState() != tilthv1.JobState_JOB_STATE_DONE {
		t.Errorf("the last event is %v", seen[len(seen)-1])
	}
}

// repeat repeats a call until it succeeds.
func repeat(ctx context.Context, t *testing.T, call func(context.Context) error) {
	t.Helper()
	if err := agent.Report(ctx, (&workers{}).logger(), "test", call); err != nil {
		t.Fatal(err)
	}
}
