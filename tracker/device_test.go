package tracker_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// decider is the device administration of a tracker, over the wire or in process.
type decider interface {
	CordonDevice(context.Context, *tilthv1.CordonDeviceRequest) (*tilthv1.CordonDeviceResponse, error)
	UncordonDevice(context.Context, *tilthv1.UncordonDeviceRequest) (*tilthv1.UncordonDeviceResponse, error)
	DrainDevice(context.Context, *tilthv1.DrainDeviceRequest) (*tilthv1.DrainDeviceResponse, error)
	GetDevice(context.Context, *tilthv1.GetDeviceRequest) (*tilthv1.GetDeviceResponse, error)
}

// wired is a decider over gRPC that survives the farm's restarts.
type wired struct{ *trackerFarm }

func (w wired) client() tilthv1.DeviceServiceClient { return tilthv1.NewDeviceServiceClient(w.conn) }

func (w wired) CordonDevice(ctx context.Context, r *tilthv1.CordonDeviceRequest) (*tilthv1.CordonDeviceResponse, error) {
	return w.client().CordonDevice(ctx, r)
}

func (w wired) UncordonDevice(ctx context.Context, r *tilthv1.UncordonDeviceRequest) (*tilthv1.UncordonDeviceResponse, error) {
	return w.client().UncordonDevice(ctx, r)
}

func (w wired) DrainDevice(ctx context.Context, r *tilthv1.DrainDeviceRequest) (*tilthv1.DrainDeviceResponse, error) {
	return w.client().DrainDevice(ctx, r)
}

func (w wired) GetDevice(ctx context.Context, r *tilthv1.GetDeviceRequest) (*tilthv1.GetDeviceResponse, error) {
	return w.client().GetDevice(ctx, r)
}

func cordon(t testing.TB, d decider, name, reason string, duration time.Duration) *tilthv1.Device {
	t.Helper()
	req := &tilthv1.CordonDeviceRequest{Name: name, By: "anna", Reason: reason}
	if duration > 0 {
		req.Duration = durationpb.New(duration)
	}
	return must[*tilthv1.CordonDeviceResponse](t)(d.CordonDevice(t.Context(), req)).GetDevice()
}

func uncordon(t testing.TB, d decider, name string) *tilthv1.Device {
	t.Helper()
	return must[*tilthv1.UncordonDeviceResponse](t)(d.UncordonDevice(t.Context(), &tilthv1.UncordonDeviceRequest{Name: name, By: "bert"})).GetDevice()
}

func device(t testing.TB, d decider, name string) *tilthv1.Device {
	t.Helper()
	return must[*tilthv1.GetDeviceResponse](t)(d.GetDevice(t.Context(), &tilthv1.GetDeviceRequest{Name: name})).GetDevice()
}

func wantDevice(t testing.TB, d *tilthv1.Device, state tilthv1.DeviceState) {
	t.Helper()
	if d.GetState() != state {
		t.Errorf("the device is %v, want %v: %v", d.GetState(), state, d)
	}
}

// changes formats a device's history compactly.
func changes(d *tilthv1.Device) string {
	var out []string
	for _, c := range d.GetHistory() {
		out = append(out, strings.ToLower(strings.TrimPrefix(c.GetState().String(), "DEVICE_STATE_"))+" by "+c.GetBy()+": "+c.GetReason())
	}
	return strings.Join(out, "; ")
}

const (
	ready    = tilthv1.DeviceState_DEVICE_STATE_READY
	cordoned = tilthv1.DeviceState_DEVICE_STATE_CORDONED
	draining = tilthv1.DeviceState_DEVICE_STATE_DRAINING
)

// measurable prepares a job until one of its batches waits for a runner.
func (f *trackerFarm) measurable(request string) *tilthv1.Job {
	f.Helper()
	job := f.submit(request, spec("conv"))
	f.propose(f.mustLease(f.tuner()).GetLease(), 0, 0, "a")
	f.reportBuild(f.buildReport(f.mustLease(f.builder())))
	return job
}

func TestCordonedDeviceIsGivenNoWorkAndStaysJoined(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.measurable("r1")
	session := f.runner()
	wantDevice(t, cordon(t, wired{f}, "runner", "fan", 0), cordoned)
	if w := f.lease(session); w.GetLease() != nil {
		t.Error("a cordoned device was given work")
	}
	f.restart()
	if w := f.lease(session); w.GetLease() != nil {
		t.Error("after a restart a cordoned device was given work")
	}
	session = f.runner() // the runner restarted
	if w := f.lease(session); w.GetLease() != nil {
		t.Error("a cordoned device that joined again was given work")
	}
	d := device(t, wired{f}, "runner")
	if c := d.GetCordon(); c.GetBy() != "anna" || c.GetReason() != "fan" || c.GetUntil() != nil || d.GetAgent().GetState() != tilthv1.AgentState_AGENT_STATE_IDLE {
		t.Errorf("the device is %v", d)
	}
	other := f.join("other", tilthv1.AgentKind_AGENT_KIND_RUNNER)
	d = uncordon(t, wired{f}, "runner")
	if got, want := changes(d), "cordoned by anna: fan; ready by bert: "; got != want {
		t.Errorf("history %q, want %q", got, want)
	}
	f.mustLease(session)
	if w := f.lease(other); w.GetLease() != nil {
		t.Error("the same batch was given twice")
	}
}

func TestCordonedDevicesKeepTheirLeases(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	job := f.measurable("r1")
	w := f.mustLease(f.runner())
	if d := cordon(t, wired{f}, "runner", "", 0); d.GetLeases() != 1 {
		t.Errorf("the device has %d leases", d.GetLeases())
	}
	f.report(w.GetLease(), ok(w.GetMeasure().GetCandidates()[0], 1))
	if n := f.job(job.GetId()).GetProgress()[0].GetTrials(); n != 1 {
		t.Errorf("%d trials are recorded", n)
	}
}

func TestDrainedDeviceHasFinishedWhatItHeld(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(map[bool]string{false: "at once", true: "with a restart meanwhile"}[restart], func(t *testing.T) {
			f := newFarm(t, tracker.Config{})
			f.measurable("r1")
			session := f.runner()
			w := f.mustLease(session)
			drain := &tilthv1.DrainDeviceRequest{Name: "runner", By: "anna", Reason: "kernel"}
			asked := must[*tilthv1.DrainDeviceResponse](t)(wired{f}.DrainDevice(t.Context(), drain)).GetDevice()
			wantDevice(t, asked, draining)
			if restart {
				f.restart()
				wantDevice(t, device(t, wired{f}, "runner"), draining)
			}
			drain.Wait = seconds(60)
			done := make(chan *tilthv1.Device)
			go func() {
				r, err := wired{f}.DrainDevice(t.Context(), drain)
				if err != nil {
					t.Error(err)
				}
				done <- r.GetDevice()
			}()
			f.report(w.GetLease(), ok(w.GetMeasure().GetCandidates()[0], 1))
			d := <-done
			wantDevice(t, d, cordoned)
			if got, want := changes(d), "draining by anna: kernel; cordoned by : drained: kernel"; got != want {
				t.Errorf("history %q, want %q", got, want)
			}
			wantDevice(t, must[*tilthv1.DrainDeviceResponse](t)(wired{f}.DrainDevice(t.Context(), drain)).GetDevice(), cordoned)
		})
	}
}

func TestDeviceThatDiesWhileItIsDrainedIsDrained(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.measurable("r1")
	session := f.runner()
	f.mustLease(session)
	must[*tilthv1.DrainDeviceResponse](t)(wired{f}.DrainDevice(t.Context(), &tilthv1.DrainDeviceRequest{Name: "runner"}))
	must[*tilthv1.LeaveResponse](t)(f.agents.Leave(t.Context(), &tilthv1.LeaveRequest{Session: session}))
	wantDevice(t, device(t, wired{f}, "runner"), cordoned)
	f.mustLease(f.join("other", tilthv1.AgentKind_AGENT_KIND_RUNNER))
}

func TestInvalidDeviceDecisionsAreRefused(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.runner()
	f.tuner()
	_, err := wired{f}.CordonDevice(t.Context(), &tilthv1.CordonDeviceRequest{Name: "nobody"})
	wantStatus(t, err, codes.NotFound, "", `device "nobody" does not exist`)
	_, err = wired{f}.UncordonDevice(t.Context(), &tilthv1.UncordonDeviceRequest{Name: "tuner"})
	wantStatus(t, err, codes.NotFound, "", `device "tuner" does not exist`)
	_, err = wired{f}.CordonDevice(t.Context(), &tilthv1.CordonDeviceRequest{Name: "runner", Duration: seconds(-1)})
	wantStatus(t, err, codes.InvalidArgument, "", "duration")
	_, err = wired{f}.DrainDevice(t.Context(), &tilthv1.DrainDeviceRequest{Name: "runner", Wait: seconds(61)})
	wantStatus(t, err, codes.InvalidArgument, "", "wait")
	_, err = wired{f}.CordonDevice(t.Context(), &tilthv1.CordonDeviceRequest{Name: "runner", Reason: strings.Repeat("x", 2000)})
	wantStatus(t, err, codes.InvalidArgument, "", "reason")
	wantDevice(t, device(t, wired{f}, "runner"), ready)
}

func TestDeviceKeepsItsLastTwentyChanges(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.runner()
	for range 15 {
		cordon(t, wired{f}, "runner", "again", 0)
		cordon(t, wired{f}, "runner", "again", 0) // the answer was lost
		uncordon(t, wired{f}, "runner")
	}
	f.restart()
	if n := len(device(t, wired{f}, "runner").GetHistory()); n != 20 {
		t.Errorf("%d changes are kept", n)
	}
}

var built = []byte("built")

// keepBuilt stores an artifact in the folder and restarts the tracker to find it, because uploads need gRPC.
func (f *timed) keepBuilt() {
	f.t.Helper()
	digest := records.Digest(built)
	dir := filepath.Join(f.path, "artifacts", digest[:2])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, digest), built, 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.stop()
	f.start()
}

// measurable prepares a job until one of its batches waits for a runner.
func (f *timed) measurable() {
	f.t.Helper()
	f.submit()
	ctx := f.t.Context()
	search := f.lease(f.join("tuner"), 0)
	must[*tilthv1.ProposeBatchResponse](f.t)(f.ProposeBatch(ctx, &tilthv1.ProposeBatchRequest{Lease: search, Candidates: candidates("a")}))
	build := f.lease(f.joinAs("builder", tilthv1.AgentKind_AGENT_KIND_BUILDER), 0)
	must[*tilthv1.ReportBuildResponse](f.t)(f.ReportBuild(ctx, &tilthv1.ReportBuildRequest{
		Lease:     build,
		Outcomes:  []*tilthv1.BuildOutcome{{Candidate: records.Digest([]byte("a")), Error: none}},
		Artifacts: []*tilthv1.ArtifactRef{{Role: "candidates", Digest: records.Digest(built), SizeBytes: uint64(len(built))}},
	}))
}

func TestDeviceCordonedForAnHourComesBackByItself(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(map[bool]string{false: "at once", true: "with a restart meanwhile"}[restart], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newTimed(t)
				defer func() { f.stop() }()
				f.keepBuilt()
				f.measurable()
				session := f.joinAs("runner", tilthv1.AgentKind_AGENT_KIND_RUNNER)
				if got := cordon(t, f, "runner", "fan", time.Hour).GetCordon().GetUntil().AsTime(); !got.Equal(time.Now().Add(time.Hour)) {
					t.Errorf("cordoned until %v", got)
				}
				f.beat(session, 59*time.Minute)
				wantDevice(t, device(t, f, "runner"), cordoned)
				if restart {
					f.stop()
					f.start()
				}
				for range 5 { // a waiting call gets the work when the cooldown ends
					if f.lease(session, 20) != nil {
						break
					}
				}
				if device(t, f, "runner").GetLeases() != 1 {
					t.Error("no work after the hour")
				}
				d := device(t, f, "runner")
				wantDevice(t, d, ready)
				if got, want := changes(d), "cordoned by anna: fan; ready by : its time is over"; got != want {
					t.Errorf("history %q, want %q", got, want)
				}
			})
		})
	}
}

func TestCallThatWaitsFollowsTheStateOfItsDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimed(t)
		defer func() { f.stop() }()
		f.keepBuilt()
		session := f.joinAs("runner", tilthv1.AgentKind_AGENT_KIND_RUNNER)
		leases := make(chan *tilthv1.LeaseToken, 1)
		go func() { leases <- f.lease(session, 60) }()
		synctest.Wait()
		cordon(t, f, "runner", "", 0)
		f.measurable()
		synctest.Wait()
		if len(leases) > 0 {
			t.Errorf("a call that waited when its device was cordoned was given %v", <-leases)
		}
		uncordon(t, f, "runner")
		if <-leases == nil {
			t.Error("a call that waited when its device was uncordoned was given nothing")
		}
	})
}
