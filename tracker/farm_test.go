package tracker_test

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

func TestMain(m *testing.M) {
	if told := strings.Split(os.Getenv(takeoverEnv), "\n"); len(told) == 3 {
		if err := rivalProcess(told[0], told[1], told[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if path := os.Getenv(trackerProcessEnv); path != "" {
		trackerProcess(path)
		return
	}
	goleak.VerifyTestMain(pgserver.Tests{M: m})
}

const (
	none  = tilthv1.ErrorClass_ERROR_CLASS_NONE
	crash = tilthv1.ErrorClass_ERROR_CLASS_CRASH
)

// trackerFarm is a tracker with its own records file, and clients of all services over an in-memory connection.
type trackerFarm struct {
	testing.TB
	dir string
	cfg tracker.Config
	// open opens the store; nil means openFile.
	open func(path string) (records.Store, error)
	// intercept, if set, intercepts the clients' calls.
	intercept grpc.UnaryClientInterceptor
	// dial holds additional options of the clients' connection.
	dial    []grpc.DialOption
	stop    func()
	tracker *tracker.Tracker
	conn    *grpc.ClientConn
	jobs    tilthv1.JobServiceClient
	agents  tilthv1.AgentServiceClient
	search  tilthv1.SearchServiceClient
	build   tilthv1.BuildServiceClient
	measure tilthv1.MeasureServiceClient
	records tilthv1.RecordServiceClient
}

func newFarm(t testing.TB, cfg tracker.Config) *trackerFarm {
	t.Helper()
	cfg.FirstRetry = cmp.Or(cfg.FirstRetry, -1) // immediately; only tests of retries wait for them
	f := &trackerFarm{TB: t, dir: t.TempDir(), cfg: cfg}
	f.start()
	t.Cleanup(func() { f.stop() })
	return f
}

func openFile(path string) (records.Store, error) { return bolt.Open(path, bolt.Options{}) }

func (f *trackerFarm) start() {
	f.Helper()
	open := f.open
	if open == nil {
		open = openFile
	}
	db, err := open(filepath.Join(f.dir, "records.db"))
	if err != nil {
		f.Fatal(err)
	}
	f.cfg.Store, f.cfg.ArtifactsDir = db, filepath.Join(f.dir, "artifacts")
	tr, err := tracker.New(f.cfg)
	if err != nil {
		f.Fatal(err)
	}
	f.tracker = tr
	lis := bufconn.Listen(1 << 20)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- tr.Serve(ctx, lis, nil) }()
	opts := slices.Clone(f.dial)
	if f.intercept != nil {
		opts = append(opts, grpc.WithUnaryInterceptor(f.intercept))
	}
	f.conn = connect(f, lis, opts...)
	f.jobs = tilthv1.NewJobServiceClient(f.conn)
	f.agents = tilthv1.NewAgentServiceClient(f.conn)
	f.search = tilthv1.NewSearchServiceClient(f.conn)
	f.build = tilthv1.NewBuildServiceClient(f.conn)
	f.measure = tilthv1.NewMeasureServiceClient(f.conn)
	f.records = tilthv1.NewRecordServiceClient(f.conn)
	f.stop = func() {
		f.conn.Close()
		cancel()
		if err := <-served; err != nil {
			f.Errorf("tracker: %v", err)
		}
		if err := db.Close(); err != nil {
			f.Errorf("close: %v", err)
		}
	}
}

func connect(t testing.TB, lis *bufconn.Listener, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:farm", append(opts,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))...)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// restart stops and starts the tracker on the same files. kill_test.go covers kill -9.
func (f *trackerFarm) restart() {
	f.Helper()
	f.stop()
	f.start()
}

func spec(tasks ...string) *tilthv1.JobSpec {
	s := &tilthv1.JobSpec{
		Name:   "resnet18",
		Target: &tilthv1.TargetSpec{Fingerprint: "cpu-1", Toolchain: "clang-19", DeviceClass: "x86"},
		Budget: &tilthv1.Budget{Trials: 100},
		Tuner:  "random",
	}
	for _, name := range tasks {
		w := []byte("workload " + name)
		s.Tasks = append(s.Tasks, &tilthv1.TaskSpec{Name: name, Workload: w, WorkloadDigest: records.Digest(w), Weight: 1})
	}
	return s
}

func candidates(names ...string) (out []*tilthv1.Candidate) {
	for _, n := range names {
		out = append(out, &tilthv1.Candidate{Trace: []byte(n), Digest: records.Digest([]byte(n))})
	}
	return out
}

func agentSpec(name string, kind tilthv1.AgentKind) *tilthv1.AgentSpec {
	s := &tilthv1.AgentSpec{Name: name, Kind: kind}
	switch kind {
	case tilthv1.AgentKind_AGENT_KIND_TUNER:
		s.Tuners = []string{"random", "ga"}
	case tilthv1.AgentKind_AGENT_KIND_BUILDER:
		s.Toolchains = []string{"clang-19"}
	case tilthv1.AgentKind_AGENT_KIND_RUNNER:
		s.DeviceClasses = []*tilthv1.DeviceClass{{Name: "x86"}}
	}
	return s
}

func must[R any](t testing.TB) func(r R, err error) R {
	return func(r R, err error) R {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

func (f *trackerFarm) submit(request string, s *tilthv1.JobSpec) *tilthv1.Job {
	f.Helper()
	r := must[*tilthv1.SubmitJobResponse](f)(f.jobs.SubmitJob(f.Context(), &tilthv1.SubmitJobRequest{RequestId: request, Spec: s}))
	return r.GetJob()
}

func (f *trackerFarm) join(name string, kind tilthv1.AgentKind) string {
	f.Helper()
	return must[*tilthv1.JoinResponse](f)(f.agents.Join(f.Context(), &tilthv1.JoinRequest{Spec: agentSpec(name, kind)})).GetSession()
}

func (f *trackerFarm) tuner() string { return f.join("tuner", tilthv1.AgentKind_AGENT_KIND_TUNER) }
func (f *trackerFarm) builder() string {
	return f.join("builder", tilthv1.AgentKind_AGENT_KIND_BUILDER)
}
func (f *trackerFarm) runner() string { return f.join("runner", tilthv1.AgentKind_AGENT_KIND_RUNNER) }

// lease requests work without waiting.
func (f *trackerFarm) lease(session string) *tilthv1.LeaseWorkResponse {
	f.Helper()
	return must[*tilthv1.LeaseWorkResponse](f)(f.agents.LeaseWork(f.Context(), &tilthv1.LeaseWorkRequest{Session: session}))
}

// mustLease requests work that must be available.
func (f *trackerFarm) mustLease(session string) *tilthv1.LeaseWorkResponse {
	f.Helper()
	w := f.lease(session)
	if w.GetLease() == nil {
		f.Fatal("no work")
	}
	return w
}

func (f *trackerFarm) propose(lease *tilthv1.LeaseToken, n uint64, task uint32, names ...string) *tilthv1.ProposeBatchResponse {
	f.Helper()
	return must[*tilthv1.ProposeBatchResponse](f)(f.search.ProposeBatch(f.Context(), &tilthv1.ProposeBatchRequest{
		Lease: lease, Proposal: n, TaskIndex: task, Candidates: candidates(names...),
	}))
}

// upload stores an artifact and returns its reference.
func (f *trackerFarm) upload(content string) *tilthv1.ArtifactRef {
	f.Helper()
	path := filepath.Join(f.TempDir(), "artifact")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		f.Fatal(err)
	}
	client := artifact.NewClient(f.conn, nil, f.cfg.Logger)
	return must[*tilthv1.ArtifactRef](f)(client.Upload(f.Context(), "candidates", path))
}

// buildReport returns a report of a successful build of all candidates except those named.
func (f *trackerFarm) buildReport(w *tilthv1.LeaseWorkResponse, failed ...string) *tilthv1.ReportBuildRequest {
	f.Helper()
	r := &tilthv1.ReportBuildRequest{Lease: w.GetLease()}
	built := 0
	for _, c := range w.GetBuild().GetCandidates() {
		o := &tilthv1.BuildOutcome{Candidate: c.GetDigest(), Error: none, BuildSeconds: 0.25}
		for _, name := range failed {
			if string(c.GetTrace()) == name {
				o.Error, o.Message = tilthv1.ErrorClass_ERROR_CLASS_COMPILE_ERROR, "no"
			}
		}
		if o.GetError() == none {
			built++
		}
		r.Outcomes = append(r.Outcomes, o)
	}
	if built > 0 {
		r.Artifacts = []*tilthv1.ArtifactRef{f.upload("built " + w.GetBuild().GetBatchId())}
	}
	return r
}

func (f *trackerFarm) reportBuild(r *tilthv1.ReportBuildRequest) {
	f.Helper()
	must[*tilthv1.ReportBuildResponse](f)(f.build.ReportBuild(f.Context(), r))
}

func ok(c *tilthv1.Candidate, latency float64) *tilthv1.Measurement {
	return &tilthv1.Measurement{
		Candidate: &tilthv1.Candidate{Digest: c.GetDigest(), Trial: c.GetTrial()}, Error: none,
		SamplesSeconds: []float64{latency}, LatencySeconds: latency, RunSeconds: 0.5,
	}
}

func crashed(c *tilthv1.Candidate) *tilthv1.Measurement {
	return &tilthv1.Measurement{
		Candidate: &tilthv1.Candidate{Digest: c.GetDigest(), Trial: c.GetTrial()}, Error: crash, Message: "signal 11",
	}
}

func (f *trackerFarm) report(lease *tilthv1.LeaseToken, ms ...*tilthv1.Measurement) {
	f.Helper()
	must[*tilthv1.ReportMeasurementsResponse](f)(f.measure.ReportMeasurements(f.Context(),
		&tilthv1.ReportMeasurementsRequest{Lease: lease, Measurements: ms}))
}

func (f *trackerFarm) job(id string) *tilthv1.Job {
	f.Helper()
	return must[*tilthv1.GetJobResponse](f)(f.jobs.GetJob(f.Context(), &tilthv1.GetJobRequest{JobId: id})).GetJob()
}

// events reads n events of a job from a sequence number on.
func (f *trackerFarm) events(id string, from uint64, n int) (out []*tilthv1.JobEvent) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 10*time.Minute) // detects a hang
	defer cancel()
	stream := must[grpc.ServerStreamingClient[tilthv1.WatchJobResponse]](f)(
		f.jobs.WatchJob(ctx, &tilthv1.WatchJobRequest{JobId: id, FromSequence: from}))
	for range n {
		out = append(out, must[*tilthv1.WatchJobResponse](f)(stream.Recv()).GetEvent())
	}
	return out
}

// describe formats events compactly.
func describe(events []*tilthv1.JobEvent) string {
	var out []string
	for _, e := range events {
		switch v := e.GetEvent().(type) {
		case *tilthv1.JobEvent_State:
			out = append(out, strings.ToLower(strings.TrimPrefix(v.State.GetState().String(), "JOB_STATE_")))
		case *tilthv1.JobEvent_Proposed:
			out = append(out, fmt.Sprintf("proposed %d×%d", v.Proposed.GetProposal(), len(v.Proposed.GetCandidates())))
		case *tilthv1.JobEvent_Trial:
			m := v.Trial.GetMeasurement()
			out = append(out, fmt.Sprintf("trial %d.%d %s %v", v.Trial.GetTaskIndex(), m.GetCandidate().GetTrial(),
				m.GetCandidate().GetTrace(), m.GetLatencySeconds()))
		case *tilthv1.JobEvent_DeadLetter:
			out = append(out, "dead "+v.DeadLetter.GetError().String())
		case *tilthv1.JobEvent_Retried:
			out = append(out, fmt.Sprint("retried ", v.Retried.GetTrials()))
		}
	}
	return strings.Join(out, ", ")
}

func wantStatus(t testing.TB, err error, code codes.Code, reason, text string) {
	t.Helper()
	if status.Code(err) != code || wire.Reason(err) != reason || !strings.Contains(fmt.Sprint(err), text) {
		t.Errorf("got %v (reason %q), want %v, reason %q, %q", err, wire.Reason(err), code, reason, text)
	}
}

func wantStale(t testing.TB, err error) {
	t.Helper()
	wantStatus(t, err, codes.FailedPrecondition, wire.ReasonStaleLease, "drop the work")
}

func seconds(n int) *durationpb.Duration { return durationpb.New(time.Duration(n) * time.Second) }
