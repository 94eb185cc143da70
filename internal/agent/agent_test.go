package agent_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit is the timeout of waits in a failing test.
const limit = 10 * time.Minute

// farm is a tracker on a unix socket that can stop and restart.
type farm struct {
	*testing.T
	dir  string
	stop func()
	conn *grpc.ClientConn
	jobs tilthv1.JobServiceClient
}

func newFarm(t *testing.T) *farm {
	t.Helper()
	f := &farm{T: t, dir: t.TempDir()}
	f.start()
	conn, err := agent.Dial("unix:" + filepath.Join(f.dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	f.conn, f.jobs = conn, tilthv1.NewJobServiceClient(conn)
	t.Cleanup(func() { conn.Close(); f.stop() })
	return f
}

func (f *farm) start() {
	f.Helper()
	db, err := bolt.Open(filepath.Join(f.dir, "records.db"), bolt.Options{})
	if err != nil {
		f.Fatal(err)
	}
	tr, err := tracker.New(tracker.Config{
		Store: db, ArtifactsDir: filepath.Join(f.dir, "artifacts"), HeartbeatInterval: 100 * time.Millisecond,
	})
	if err != nil {
		f.Fatal(err)
	}
	lis, err := net.Listen("unix", filepath.Join(f.dir, "sock"))
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- tr.Serve(ctx, lis, nil) }()
	f.stop = func() {
		cancel()
		if err := errors.Join(<-served, db.Close()); err != nil {
			f.Error(err)
		}
	}
}

func (f *farm) submit(request string) string {
	f.Helper()
	w := []byte("workload")
	var id string
	err := agent.Report(f.Context(), discard, "SubmitJob", func(ctx context.Context) error {
		r, err := f.jobs.SubmitJob(ctx, &tilthv1.SubmitJobRequest{RequestId: request, Spec: &tilthv1.JobSpec{
			Name: "m", Tuner: "random", Budget: &tilthv1.Budget{Trials: 1},
			Target: &tilthv1.TargetSpec{Fingerprint: "cpu", Toolchain: "clang", DeviceClass: "x86"},
			Tasks:  []*tilthv1.TaskSpec{{Name: "conv", Workload: w, WorkloadDigest: records.Digest(w), Weight: 1}},
		}})
		id = r.GetJob().GetId()
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	return id
}

func (f *farm) job(id string) *tilthv1.Job {
	f.Helper()
	r, err := f.jobs.GetJob(f.Context(), &tilthv1.GetJobRequest{JobId: id})
	if err != nil {
		f.Fatal(err)
	}
	return r.GetJob()
}

// tuner runs an agent with a handler. The returned function stops it and waits for its end.
func (f *farm) tuner(name string, slots int, drain time.Duration, handle agent.HandlerFunc) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- agent.Run(ctx, agent.Config{
			Conn: f.conn, Handler: handle, Slots: slots, DrainGrace: drain,
			Spec:       &tilthv1.AgentSpec{Name: name, Kind: tilthv1.AgentKind_AGENT_KIND_TUNER, Tuners: []string{"random"}},
			FirstRetry: time.Millisecond, MaxRetry: 20 * time.Millisecond,
		})
	}()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			f.Errorf("agent: %v", err)
		}
	}
}

func (f *farm) finish(ctx context.Context, lease *tilthv1.LeaseToken) error {
	return agent.Report(ctx, discard, "FinishJob", func(ctx context.Context) error {
		_, err := tilthv1.NewSearchServiceClient(f.conn).FinishJob(ctx, &tilthv1.FinishJobRequest{
			Lease: lease, State: tilthv1.JobState_JOB_STATE_DONE,
		})
		return err
	})
}

// within receives from a channel with a timeout.
func within[T any](t *testing.T, ch <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(limit):
		t.Fatal("nothing came")
	}
	return v
}

func TestWorkGoesOnWhileTheTrackerIsAway(t *testing.T) {
	f := newFarm(t)
	leased, back := make(chan struct{}, 2), make(chan struct{})
	done := make(chan error, 2)
	stop := f.tuner("tuner", 1, limit, func(ctx context.Context, work *tilthv1.LeaseWorkResponse) error {
		leased <- struct{}{}
		select {
		case <-back:
		case <-ctx.Done():
		}
		err := f.finish(ctx, work.GetLease())
		// A heartbeat that overlaps the report may be answered first and report the ended lease as lost. The repeated
		// report is accepted once the first one is on disk.
		if errors.Is(err, agent.ErrDropped) {
			err = f.finish(f.Context(), work.GetLease())
		}
		done <- err
		return err
	})
	defer stop()
	id := f.submit("r1")
	within(t, leased)
	f.stop()
	close(back) // the tracker is down when the report is sent
	f.start()
	if err := within(t, done); err != nil {
		t.Fatal(err)
	}
	if s := f.job(id).GetState(); s != tilthv1.JobState_JOB_STATE_DONE {
		t.Errorf("the job is %v", s)
	}
	f.submit("r2")
	within(t, leased) // the agent continues with the restarted tracker
}

func TestDroppedWorkIsToldToItsHandler(t *testing.T) {
	f := newFarm(t)
	leased, causes := make(chan struct{}, 1), make(chan error, 1)
	stop := f.tuner("tuner", 1, limit, func(ctx context.Context, _ *tilthv1.LeaseWorkResponse) error {
		leased <- struct{}{}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return ctx.Err()
	})
	defer stop()
	id := f.submit("r1")
	within(t, leased)
	if _, err := f.jobs.CancelJob(t.Context(), &tilthv1.CancelJobRequest{JobId: id}); err != nil {
		t.Fatal(err)
	}
	if cause := within(t, causes); !errors.Is(cause, agent.ErrDropped) {
		t.Errorf("cause is %v", cause)
	}
}

func TestHandlerThatFailsFailsItsAttempt(t *testing.T) {
	f := newFarm(t)
	failed := make(chan struct{})
	stop := f.tuner("tuner", 1, limit, func(context.Context, *tilthv1.LeaseWorkResponse) error {
		defer close(failed)
		return errors.New("no such search: \xff")
	})
	id := f.submit("r1")
	within(t, failed)
	stop()
	if j := f.job(id); j.GetState() != tilthv1.JobState_JOB_STATE_FAILED || j.GetReason() != "no such search: \uFFFD" {
		t.Errorf("the job is %v: %s", j.GetState(), j.GetReason())
	}
}

func TestAgentThatStopsFinishesWhatItHoldsOrHandsItBack(t *testing.T) {
	for name, c := range map[string]struct {
		drain time.Duration
		want  tilthv1.JobState
		cause error
	}{
		"finishes":   {limit, tilthv1.JobState_JOB_STATE_DONE, nil},
		"hands back": {time.Nanosecond, tilthv1.JobState_JOB_STATE_QUEUED, agent.ErrDraining},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFarm(t)
			leased, finish := make(chan struct{}, 1), make(chan struct{})
			stop := f.tuner("tuner", 1, c.drain, func(ctx context.Context, work *tilthv1.LeaseWorkResponse) error {
				leased <- struct{}{}
				select {
				case <-finish:
					return f.finish(ctx, work.GetLease())
				case <-ctx.Done():
					if cause := context.Cause(ctx); !errors.Is(cause, c.cause) {
						t.Errorf("cause is %v", cause)
					}
					return ctx.Err()
				}
			})
			id := f.submit("r1")
			within(t, leased)
			stopped := make(chan struct{})
			go func() { stop(); close(stopped) }()
			if c.cause == nil {
				close(finish)
			}
			within(t, stopped)
			if s := f.job(id).GetState(); s != c.want {
				t.Errorf("the job is %v, want %v", s, c.want)
			}
			a, err := tilthv1.NewAgentServiceClient(f.conn).GetAgent(t.Context(), &tilthv1.GetAgentRequest{Name: "tuner"})
			if err != nil || a.GetAgent().GetState() != tilthv1.AgentState_AGENT_STATE_GONE {
				t.Errorf("the agent is %v, %v", a, err)
			}
		})
	}
}

func TestVoidSessionDropsItsWorkAndJoinsAgain(t *testing.T) {
	f := newFarm(t)
	leased, causes := make(chan struct{}, 2), make(chan error, 2)
	stop := f.tuner("tuner", 1, time.Millisecond, func(ctx context.Context, _ *tilthv1.LeaseWorkResponse) error {
		leased <- struct{}{}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return ctx.Err()
	})
	f.submit("r1")
	within(t, leased)
	_, err := tilthv1.NewAgentServiceClient(f.conn).Join(t.Context(), &tilthv1.JoinRequest{
		Spec: &tilthv1.AgentSpec{Name: "tuner", Kind: tilthv1.AgentKind_AGENT_KIND_TUNER, Tuners: []string{"other"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if cause := within(t, causes); !errors.Is(cause, agent.ErrVoidSession) && !errors.Is(cause, agent.ErrDropped) {
		t.Errorf("cause is %v", cause)
	}
	within(t, leased) // in the new session
	stop()
	_ = within(t, causes) // the second cause is irrelevant
}

func TestSlotsHoldSeveralLeases(t *testing.T) {
	f := newFarm(t)
	leased, finish := make(chan struct{}, 3), make(chan struct{})
	stop := f.tuner("tuner", 3, limit, func(ctx context.Context, work *tilthv1.LeaseWorkResponse) error {
		leased <- struct{}{}
		<-finish
		return f.finish(ctx, work.GetLease())
	})
	for _, r := range []string{"r1", "r2", "r3"} {
		f.submit(r)
	}
	for range 3 {
		within(t, leased)
	}
	close(finish)
	stop()
}

func TestAgentThatIsRefusedSaysWhy(t *testing.T) {
	f := newFarm(t)
	err := agent.Run(t.Context(), agent.Config{
		Conn: f.conn, Handler: agent.HandlerFunc(nil), Spec: &tilthv1.AgentSpec{Name: "a", Kind: tilthv1.AgentKind_AGENT_KIND_RUNNER},
	})
	if status.Code(errors.Unwrap(err)) != codes.InvalidArgument || !strings.Contains(err.Error(), "join the tracker as a") {
		t.Errorf("got %v", err)
	}
}

func TestAgentWithoutTrackerStopsWhenAsked(t *testing.T) {
	conn, err := agent.Dial("unix:" + filepath.Join(t.TempDir(), "none"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- agent.Run(ctx, agent.Config{Conn: conn, Spec: &tilthv1.AgentSpec{Name: "a"}})
	}()
	cancel()
	if err := within(t, ended); err != nil {
		t.Error(err)
	}
}

func TestWatchEndsWithItsJobItsVisitorOrItsContext(t *testing.T) {
	f := newFarm(t)
	id := f.submit("r1")
	of := func(id string) *tilthv1.WatchJobRequest { return &tilthv1.WatchJobRequest{JobId: id} }
	enough := errors.New("enough")
	err := agent.Watch(t.Context(), f.conn, discard, of(id), func(*tilthv1.JobEvent) error { return enough }, nil)
	if !errors.Is(err, enough) {
		t.Errorf("the visitor's error came back as %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	err = agent.Watch(ctx, f.conn, discard, of(id), func(*tilthv1.JobEvent) error { cancel(enough); return nil }, nil)
	if !errors.Is(err, enough) {
		t.Errorf("the context's cause came back as %v", err)
	}
	if err := agent.Watch(t.Context(), f.conn, discard, of("job-00000009"), nil, nil); status.Code(err) != codes.NotFound {
		t.Errorf("a job that is not there: %v", err)
	}
	var seen []uint64
	err = agent.Watch(t.Context(), f.conn, discard, of(id), func(e *tilthv1.JobEvent) error {
		if seen = append(seen, e.GetSequence()); len(seen) == 1 {
			f.stop()
			f.start()
			_, err := f.jobs.CancelJob(t.Context(), &tilthv1.CancelJobRequest{JobId: id}, grpc.WaitForReady(true))
			return err
		}
		return nil
	}, nil)
	if err != nil || len(seen) != 2 || seen[1] != 2 {
		t.Errorf("saw events %v, %v", seen, err)
	}
}
