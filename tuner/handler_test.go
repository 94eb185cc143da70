package tuner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// farm is a real tracker with real agents. Only the work of the builder and runner is simulated.
type farm struct {
	t    *testing.T
	conn *grpc.ClientConn
	ctx  context.Context
}

func newFarm(t *testing.T, set ...func(*tracker.Config)) *farm {
	t.Helper()
	dir := t.TempDir()
	db, err := bolt.Open(filepath.Join(dir, "tilth.db"), bolt.Options{})
	check(t, err)
	cfg := tracker.Config{Store: db, ArtifactsDir: filepath.Join(dir, "artifacts")}
	for _, set := range set {
		set(&cfg)
	}
	tr, err := tracker.New(cfg)
	check(t, err)
	rpc := bufconn.Listen(1 << 20)
	web, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- tr.Serve(ctx, rpc, web) }()
	conn, err := grpc.NewClient("passthrough:farm", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return rpc.DialContext(ctx) }))
	check(t, err)
	t.Cleanup(func() {
		check(t, conn.Close())
		cancel()
		check(t, <-served)
		check(t, db.Close())
	})
	return &farm{t: t, conn: conn, ctx: ctx}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start runs an agent until the test ends or stop is called.
func (f *farm) start(name string, kind tilthv1.AgentKind, handler agent.Handler) (stop func()) {
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan error, 1)
	spec := &tilthv1.AgentSpec{Name: name, Kind: kind}
	switch kind {
	case tilthv1.AgentKind_AGENT_KIND_TUNER:
		spec.Tuners = Names()
	case tilthv1.AgentKind_AGENT_KIND_BUILDER:
		spec.Toolchains = []string{"fake"}
	default:
		spec.DeviceClasses = []*tilthv1.DeviceClass{{Name: "fake"}}
	}
	go func() {
		done <- agent.Run(ctx, agent.Config{Conn: f.conn, Spec: spec, Handler: handler, LeaseWait: time.Second, DrainGrace: time.Millisecond})
	}()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			check(f.t, <-done)
		}
	}
	f.t.Cleanup(stop)
	return stop
}

// build accepts every candidate.
func (f *farm) build(ctx context.Context, work *tilthv1.LeaseWorkResponse) error {
	report := &tilthv1.ReportBuildRequest{Lease: work.GetLease(), Artifacts: []*tilthv1.ArtifactRef{f.object()}}
	for _, c := range work.GetBuild().GetCandidates() {
		report.Outcomes = append(report.Outcomes, &tilthv1.BuildOutcome{Candidate: c.GetDigest(), Error: tilthv1.ErrorClass_ERROR_CLASS_NONE})
	}
	_, err := tilthv1.NewBuildServiceClient(f.conn).ReportBuild(ctx, report)
	return err
}

func (f *farm) object() *tilthv1.ArtifactRef {
	content := []byte("object")
	sum := sha256.Sum256(content)
	ref := &tilthv1.ArtifactRef{Role: "candidates", Digest: hex.EncodeToString(sum[:]), SizeBytes: uint64(len(content))}
	client := tilthv1.NewArtifactServiceClient(f.conn)
	stat, err := client.StatArtifact(f.ctx, &tilthv1.StatArtifactRequest{Digest: ref.GetDigest()})
	if err == nil && stat.GetComplete() {
		return ref
	}
	stream, err := client.UploadArtifact(f.ctx)
	check(f.t, err)
	check(f.t, stream.Send(&tilthv1.UploadArtifactRequest{Digest: ref.GetDigest(), SizeBytes: ref.GetSizeBytes(), Data: content}))
	_, err = stream.CloseAndRecv()
	check(f.t, err)
	return ref
}

// verdict returns a simulated measurement.
type verdict func(c *tilthv1.Candidate) *tilthv1.Measurement

func (f *farm) measure(v verdict) agent.HandlerFunc {
	return func(ctx context.Context, work *tilthv1.LeaseWorkResponse) error {
		report := &tilthv1.ReportMeasurementsRequest{Lease: work.GetLease()}
		for _, c := range work.GetMeasure().GetCandidates() {
			report.Measurements = append(report.Measurements, v(c))
		}
		_, err := tilthv1.NewMeasureServiceClient(f.conn).ReportMeasurements(ctx, report)
		return err
	}
}

func fast(c *tilthv1.Candidate) *tilthv1.Measurement {
	seconds := 1e-3 + float64(len(c.GetOrigin()))*1e-6
	return &tilthv1.Measurement{
		Candidate: c, Error: tilthv1.ErrorClass_ERROR_CLASS_NONE, SamplesSeconds: []float64{seconds}, LatencySeconds: seconds,
	}
}

func wrong(c *tilthv1.Candidate) *tilthv1.Measurement {
	return &tilthv1.Measurement{Candidate: c, Error: tilthv1.ErrorClass_ERROR_CLASS_WRONG_RESULT, Message: "off by one"}
}

func (f *farm) spec(budget *tilthv1.Budget, workloads ...*expr.Workload) *tilthv1.JobSpec {
	spec := &tilthv1.JobSpec{
		Name: "test", Tuner: "ga", Seed: 1, Budget: budget,
		Target: &tilthv1.TargetSpec{Fingerprint: testTarget(f.t).Fingerprint(), Descriptor_: testTarget(f.t).Encode(), Toolchain: "fake", DeviceClass: "fake"},
	}
	for _, w := range workloads {
		spec.Tasks = append(spec.Tasks, &tilthv1.TaskSpec{
			Name: "product", Workload: []byte(w.Text()), WorkloadDigest: w.Digest(), Weight: 1, Flop: w.Flop(),
		})
	}
	return spec
}

func (f *farm) submit(budget *tilthv1.Budget, workloads ...*expr.Workload) *tilthv1.Job {
	spec := f.spec(budget, workloads...)
	response, err := tilthv1.NewJobServiceClient(f.conn).SubmitJob(f.ctx, &tilthv1.SubmitJobRequest{RequestId: "r", Spec: spec})
	check(f.t, err)
	return response.GetJob()
}

// wait follows the job to its end. each, if given, is called after every trial.
func (f *farm) wait(job *tilthv1.Job, each func(n int)) *tilthv1.Job {
	client := tilthv1.NewJobServiceClient(f.conn)
	stream, err := client.WatchJob(f.ctx, &tilthv1.WatchJobRequest{JobId: job.GetId()})
	check(f.t, err)
	n := 0
	for {
		response, err := stream.Recv()
		if err != nil {
			break
		}
		if response.GetEvent().GetTrial() != nil {
			if n++; each != nil {
				each(n)
			}
		}
	}
	response, err := client.GetJob(f.ctx, &tilthv1.GetJobRequest{JobId: job.GetId()})
	check(f.t, err)
	return response.GetJob()
}

func (f *farm) tuner() *Handler { return NewHandler(Config{Conn: f.conn, BatchSize: 8}) }

const (
	tunerKind   = tilthv1.AgentKind_AGENT_KIND_TUNER
	builderKind = tilthv1.AgentKind_AGENT_KIND_BUILDER
	runnerKind  = tilthv1.AgentKind_AGENT_KIND_RUNNER
)

func TestJobSpendsItsTrialsAndEnds(t *testing.T) {
	f := newFarm(t)
	f.start("builder", builderKind, agent.HandlerFunc(f.build))
	f.start("runner", runnerKind, f.measure(fast))
	f.start("tuner", tunerKind, f.tuner())
	job := f.wait(f.submit(&tilthv1.Budget{Trials: 50}, kerneltest.Product(t, 64, 64, 64), kerneltest.Product(t, 128, 64, 64)), nil)
	if job.GetState() != tilthv1.JobState_JOB_STATE_DONE || job.GetReason() != "trials spent" {
		t.Fatalf("job ended %v: %s", job.GetState(), job.GetReason())
	}
	if total := job.GetProgress()[0].GetTrials() + job.GetProgress()[1].GetTrials(); total != 50 {
		t.Errorf("%d trials, want 50", total)
	}
}

// proposals returns the task and the size of each batch of a job that has ended, in order.
func (f *farm) proposals(job *tilthv1.Job) (list [][2]int) {
	stream, err := tilthv1.NewJobServiceClient(f.conn).WatchJob(f.ctx, &tilthv1.WatchJobRequest{JobId: job.GetId()})
	check(f.t, err)
	for {
		response, err := stream.Recv()
		if err != nil {
			return list
		}
		if p := response.GetEvent().GetProposed(); p != nil {
			list = append(list, [2]int{int(p.GetTaskIndex()), len(p.GetCandidates())})
		}
	}
}

// TestEachTaskGetsOneTrialFirstInTheOrderOfItsShare covers budgets from one trial to more than one per task.
func TestEachTaskGetsOneTrialFirstInTheOrderOfItsShare(t *testing.T) {
	f := newFarm(t)
	f.start("builder", builderKind, agent.HandlerFunc(f.build))
	f.start("runner", runnerKind, f.measure(fast))
	f.start("tuner", tunerKind, f.tuner())
	spec := f.spec(nil, kerneltest.Product(t, 16, 16, 16), kerneltest.Product(t, 64, 64, 64), kerneltest.Product(t, 32, 32, 32), kerneltest.Product(t, 64, 32, 32))
	spec.Tasks[2].Weight = 16 // its share is the largest
	order := [][2]int{{2, 1}, {1, 1}, {3, 1}, {0, 1}}
	for _, trials := range []int{1, 3, 4, 12} {
		spec.Budget, spec.NoTransfer = &tilthv1.Budget{Trials: uint32(trials)}, true
		response, err := tilthv1.NewJobServiceClient(f.conn).SubmitJob(f.ctx, &tilthv1.SubmitJobRequest{RequestId: fmt.Sprint(trials), Spec: spec})
		check(t, err)
		got, want := f.proposals(f.wait(response.GetJob(), nil)), order[:min(trials, len(order))]
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("%d trials: tasks and sizes of the batches are %v, want them to begin with %v", trials, got, want)
		}
	}
}

func TestBatchReportsItsSearchTime(t *testing.T) {
	f := newFarm(t)
	f.start("tuner", tunerKind, f.tuner())
	job := f.submit(&tilthv1.Budget{Trials: 4}, kerneltest.Product(t, 64, 64, 64))
	stream, err := tilthv1.NewJobServiceClient(f.conn).WatchJob(f.ctx, &tilthv1.WatchJobRequest{JobId: job.GetId()})
	check(t, err)
	for {
		response, err := stream.Recv()
		check(t, err)
		if proposed := response.GetEvent().GetProposed(); proposed != nil {
			if proposed.GetSearchSeconds() <= 0 {
				t.Errorf("it took %v s", proposed.GetSearchSeconds())
			}
			return
		}
	}
}

func TestAnotherTunerContinuesTheJob(t *testing.T) {
	f := newFarm(t)
	f.start("builder", builderKind, agent.HandlerFunc(f.build))
	f.start("runner", runnerKind, f.measure(fast))
	stop := f.start("first", tunerKind, f.tuner())
	job := f.wait(f.submit(&tilthv1.Budget{Trials: 64}, kerneltest.Product(t, 64, 64, 64)), func(n int) {
		if n == 20 {
			stop()
			f.start("second", tunerKind, f.tuner())
		}
	})
	if job.GetState() != tilthv1.JobState_JOB_STATE_DONE {
		t.Fatalf("job ended %v: %s", job.GetState(), job.GetReason())
	}
	if p := job.GetProgress()[0]; p.GetTrials() != 64 || p.GetProposed() != 64 {
		t.Errorf("%d trials of %d proposed, want 64", p.GetTrials(), p.GetProposed())
	}
}

func TestPausedJobContinues(t *testing.T) {
	f := newFarm(t)
	f.start("builder", builderKind, agent.HandlerFunc(f.build))
	f.start("runner", runnerKind, f.measure(fast))
	f.start("tuner", tunerKind, f.tuner())
	jobs := tilthv1.NewJobServiceClient(f.conn)
	job := f.submit(&tilthv1.Budget{Trials: 64}, kerneltest.Product(t, 64, 64, 64))
	job = f.wait(job, func(n int) {
		if n == 20 {
			_, err := jobs.PauseJob(t.Context(), &tilthv1.PauseJobRequest{JobId: job.GetId()})
			check(t, err)
			_, err = jobs.ResumeJob(t.Context(), &tilthv1.ResumeJobRequest{JobId: job.GetId()})
			check(t, err)
		}
	})
	if p := job.GetProgress()[0]; job.GetState() != tilthv1.JobState_JOB_STATE_DONE || p.GetTrials() != 64 || p.GetProposed() != 64 {
		t.Errorf("the job ended %v with %d trials of %d proposed, want 64", job.GetState(), p.GetTrials(), p.GetProposed())
	}
}

func TestJobWhoseCandidatesAllFailReportsTheReason(t *testing.T) {
	f := newFarm(t)
	f.start("builder", builderKind, agent.HandlerFunc(f.build))
	f.start("runner", runnerKind, f.measure(wrong))
	f.start("tuner", tunerKind, f.tuner())
	job := f.wait(f.submit(&tilthv1.Budget{Trials: 16}, kerneltest.Product(t, 64, 64, 64)), nil)
	if job.GetState() != tilthv1.JobState_JOB_STATE_FAILED {
		t.Fatalf("job ended %v", job.GetState())
	}
	if want := "none of 16 trials of task 0 was correct: 16 wrong_result, the first said: off by one"; job.GetReason() != want {
		t.Errorf("reason %q, want %q", job.GetReason(), want)
	}
}

// TestJobWithoutMeasurementsReportsTheReason is a regression test: such a job ended as done, because its trials
// were spent, and suggested more trials.
func TestJobWithoutMeasurementsReportsTheReason(t *testing.T) {
	f := newFarm(t, func(c *tracker.Config) { c.MaxAttempts = 1 })
	f.start("builder", builderKind, agent.HandlerFunc(f.build))
	f.start("runner", runnerKind, agent.HandlerFunc(func(ctx context.Context, w *tilthv1.LeaseWorkResponse) error {
		_, err := tilthv1.NewMeasureServiceClient(f.conn).ReportMeasurements(ctx, &tilthv1.ReportMeasurementsRequest{
			Lease: w.GetLease(), InfraError: tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA, InfraMessage: "the board is off",
		})
		return err
	}))
	f.start("tuner", tunerKind, f.tuner())
	job := f.wait(f.submit(&tilthv1.Budget{Trials: 1}, kerneltest.Product(t, 64, 64, 64)), nil)
	if job.GetState() != tilthv1.JobState_JOB_STATE_FAILED || !strings.HasPrefix(job.GetReason(), "no trial was measured: batches given up: 1, ") ||
		!strings.HasSuffix(job.GetReason(), ": the board is off") {
		t.Errorf("job ended %v: %s", job.GetState(), job.GetReason())
	}
}

func TestJobEndsWhenItsTimeIsSpent(t *testing.T) {
	f := newFarm(t)
	f.start("builder", builderKind, agent.HandlerFunc(f.build))
	f.start("runner", runnerKind, agent.HandlerFunc(func(ctx context.Context, _ *tilthv1.LeaseWorkResponse) error {
		<-ctx.Done() // without measurements, only the time limit ends the job
		return context.Cause(ctx)
	}))
	f.start("tuner", tunerKind, NewHandler(Config{Conn: f.conn, Logger: slog.New(slog.DiscardHandler)}))
	job := f.wait(f.submit(&tilthv1.Budget{Time: durationpb.New(300 * time.Millisecond)}, kerneltest.Product(t, 64, 64, 64)), nil)
	if job.GetState() != tilthv1.JobState_JOB_STATE_FAILED || !strings.HasPrefix(job.GetReason(), "time spent before the first trial") {
		t.Errorf("job ended %v: %s", job.GetState(), job.GetReason())
	}
}

// TestJobWhoseTimeGoesByWaitingForTheMachineEnds simulates another process that times continuously.
func TestJobWhoseTimeGoesByWaitingForTheMachineEnds(t *testing.T) {
	f := newFarm(t)
	busy := func(ctx context.Context) (func(), error) {
		<-ctx.Done()
		return nil, fmt.Errorf("process 42 has it: %w", context.Cause(ctx))
	}
	f.start("builder", builderKind, agent.HandlerFunc(f.build))
	f.start("runner", runnerKind, f.measure(fast))
	f.start("tuner", tunerKind, NewHandler(Config{Conn: f.conn, Lock: busy}))
	job := f.wait(f.submit(&tilthv1.Budget{Time: durationpb.New(100 * time.Millisecond)}, kerneltest.Product(t, 64, 64, 64)), nil)
	if job.GetState() != tilthv1.JobState_JOB_STATE_FAILED || !strings.HasPrefix(job.GetReason(), "time spent before the first trial") {
		t.Errorf("job ended %v: %s", job.GetState(), job.GetReason())
	}
}

// TestWorkloadThatWasTunedIsOnlyConfirmed covers a second job on the same tracker, with and without the use of
// earlier records.
func TestWorkloadThatWasTunedIsOnlyConfirmed(t *testing.T) {
	f := newFarm(t)
	f.start("builder", builderKind, agent.HandlerFunc(f.build))
	f.start("runner", runnerKind, f.measure(fast))
	f.start("tuner", tunerKind, NewHandler(Config{Conn: f.conn, BatchSize: 16}))
	w := kerneltest.Product(t, 64, 64, 64)
	run := func(id string, clean bool) *tilthv1.TaskProgress {
		spec := f.spec(&tilthv1.Budget{Trials: 400}, w)
		spec.Tuner, spec.NoTransfer = Best, clean
		response, err := tilthv1.NewJobServiceClient(f.conn).SubmitJob(f.ctx, &tilthv1.SubmitJobRequest{RequestId: id, Spec: spec})
		check(t, err)
		return f.wait(response.GetJob(), nil).GetProgress()[0]
	}
	first, again, clean := run("1", false), run("2", false), run("3", true)
	if first.GetTrials() < patience || again.GetTrials() > 16 || clean.GetTrials() != first.GetTrials() {
		t.Errorf("%d trials, %d when it is known, %d when it must not be", first.GetTrials(), again.GetTrials(), clean.GetTrials())
	}
	if slower := again.GetBestSeconds() / first.GetBestSeconds(); slower > 1 {
		t.Errorf("the best was %.3f times the known one", slower)
	}
}
