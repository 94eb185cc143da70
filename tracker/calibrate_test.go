package tracker_test

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

const quarantined = tilthv1.DeviceState_DEVICE_STATE_QUARANTINED

// calibratingRunner joins as a runner that can calibrate.
func (f *trackerFarm) calibratingRunner() *tilthv1.JoinResponse {
	f.Helper()
	s := agentSpec("runner", tilthv1.AgentKind_AGENT_KIND_RUNNER)
	s.Capabilities = []string{"calibrate", "run"}
	return must[*tilthv1.JoinResponse](f)(f.agents.Join(f.Context(), &tilthv1.JoinRequest{Spec: s}))
}

// spare joins another device of the class, which quarantine requires.
func (f *trackerFarm) spare() string { return f.join("spare", tilthv1.AgentKind_AGENT_KIND_RUNNER) }

// calibrate reports n calibrations of a device that is slower by the given factor.
func (f *trackerFarm) calibrate(session string, n int, factor float64) {
	f.Helper()
	for range n {
		report := &tilthv1.CalibrationReport{Kernels: "k"}
		for range 5 {
			report.ComputeSeconds = append(report.ComputeSeconds, 2e-3*factor)
			report.MemorySeconds = append(report.MemorySeconds, 8e-3*factor)
		}
		must[*tilthv1.ReportCalibrationResponse](f)(wired{f}.client().ReportCalibration(f.Context(),
			&tilthv1.ReportCalibrationRequest{Session: session, Report: report}))
	}
}

func (f *trackerFarm) heartbeat(session string) *tilthv1.HeartbeatResponse {
	f.Helper()
	return must[*tilthv1.HeartbeatResponse](f)(f.agents.Heartbeat(f.Context(), &tilthv1.HeartbeatRequest{Session: session}))
}

// clock is a tracker's settable clock.
type clock struct {
	mu   sync.Mutex // guards time, which the tracker's goroutines read
	time time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.time
}

func (c *clock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.time = c.time.Add(d)
}

func newClock() *clock { return &clock{time: time.Now()} }

func TestCalibrationsAreAskedForAtJoinAndWhenIdle(t *testing.T) {
	c := newClock()
	f := newFarm(t, tracker.Config{Now: c.now})
	if r := must[*tilthv1.JoinResponse](t)(f.agents.Join(t.Context(), &tilthv1.JoinRequest{Spec: agentSpec("old", tilthv1.AgentKind_AGENT_KIND_RUNNER)})); r.GetCalibrate() {
		t.Error("a runner that does not know of calibrations is asked for one")
	}
	joined := f.calibratingRunner()
	if !joined.GetCalibrate() || !f.heartbeat(joined.GetSession()).GetCalibrate() {
		t.Error("no calibration is asked for after joining")
	}
	f.calibrate(joined.GetSession(), 5, 1)
	if f.heartbeat(joined.GetSession()).GetCalibrate() {
		t.Error("a calibration is asked for at once again")
	}
	c.forward(5 * time.Minute)
	if !f.heartbeat(joined.GetSession()).GetCalibrate() {
		t.Error("no calibration is asked for after five minutes")
	}
}

func TestDeviceThatBecameSlowIsQuarantinedAndProbedBack(t *testing.T) {
	c := newClock()
	f := newFarm(t, tracker.Config{Now: c.now})
	f.measurable("r1")
	f.spare()
	session := f.calibratingRunner().GetSession()
	f.calibrate(session, 5, 1)
	f.restart() // the reference is preserved
	f.calibrate(session, 3, 1.2)
	d := device(t, wired{f}, "runner")
	wantDevice(t, d, quarantined)
	if !strings.Contains(d.GetQuarantine().GetReason(), "20.0 % slower than its reference, over 8.0 %") || math.Abs(d.GetCalibration().GetDrift()-0.2) > 1e-9 {
		t.Errorf("the device is %v", d)
	}
	if f.lease(session).GetLease() != nil {
		t.Error("a quarantined device was given work")
	}
	f.restart()
	if wantDevice(t, device(t, wired{f}, "runner"), quarantined); f.heartbeat(session).GetCalibrate() {
		t.Error("it is tried again before its time")
	}
	c.forward(time.Minute)
	if !f.heartbeat(session).GetCalibrate() {
		t.Error("it is not tried again")
	}
	f.calibrate(session, 1, 1.2)
	if d := device(t, wired{f}, "runner"); d.GetQuarantine().GetUntil().AsTime().Sub(c.now()) != 2*time.Minute {
		t.Errorf("the second quarantine is %v", d.GetQuarantine())
	}
	f.calibrate(session, 1, 1)
	wantDevice(t, device(t, wired{f}, "runner"), ready)
	f.mustLease(session)
}

func TestDeviceIsRecalibratedByHand(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.spare()
	session := f.calibratingRunner().GetSession()
	f.calibrate(session, 5, 1)
	f.calibrate(session, 3, 1.2)
	r := must[*tilthv1.RecalibrateDeviceResponse](t)(wired{f}.client().RecalibrateDevice(t.Context(),
		&tilthv1.RecalibrateDeviceRequest{Name: "runner", By: "anna", Reason: "new fan"}))
	wantDevice(t, r.GetDevice(), ready)
	if r.GetDevice().GetCalibration() != nil || !f.heartbeat(session).GetCalibrate() {
		t.Errorf("the device is %v", r.GetDevice())
	}
	f.calibrate(session, 8, 1.2)
	d := device(t, wired{f}, "runner")
	if wantDevice(t, d, ready); d.GetCalibration().GetDrift() != 0 {
		t.Errorf("the device is %v", d)
	}
}

// TestCordonOutlastsAQuarantine checks that the two end independently.
func TestCordonOutlastsAQuarantine(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.spare()
	session := f.calibratingRunner().GetSession()
	f.calibrate(session, 5, 1)
	cordon(t, wired{f}, "runner", "", 0)
	f.calibrate(session, 3, 1.2)
	wantDevice(t, device(t, wired{f}, "runner"), cordoned)
	wantDevice(t, uncordon(t, wired{f}, "runner"), quarantined)
	cordon(t, wired{f}, "runner", "", 0)
	f.calibrate(session, 1, 1)
	wantDevice(t, device(t, wired{f}, "runner"), cordoned)
	wantDevice(t, uncordon(t, wired{f}, "runner"), ready)
}

// TestOnlyDeviceOfAClassIsWarnedAboutNotTakenOut because a farm with one board would stop silently.
func TestOnlyDeviceOfAClassIsWarnedAboutNotTakenOut(t *testing.T) {
	reg := prometheus.NewRegistry()
	f := newFarm(t, tracker.Config{Registerer: reg})
	f.measurable("r1")
	session := f.calibratingRunner().GetSession()
	f.calibrate(session, 5, 1)
	f.calibrate(session, 6, 1.2)
	d := device(t, wired{f}, "runner")
	wantDevice(t, d, ready)
	if !strings.Contains(d.GetWarning().GetReason(), "20.0 % slower than its reference, over 8.0 %") {
		t.Errorf("the warning is %v", d.GetWarning())
	}
	if got := changes(d); strings.Count(got, "only device of its class") != 1 {
		t.Errorf("the history is %s", got)
	}
	for _, line := range []string{"tilth_tracker_warned_devices 1\n", "tilth_tracker_device_warnings_total 1\n", "tilth_tracker_quarantines_total 0\n"} {
		if !strings.Contains(scrape(reg), line) {
			t.Errorf("metrics lack %q", line)
		}
	}
	since := d.GetWarning().GetSince().AsTime()
	f.cfg.Registerer = nil
	f.restart()
	if d := device(t, wired{f}, "runner"); !d.GetWarning().GetSince().AsTime().Equal(since) {
		t.Errorf("after a restart the warning is %v", d.GetWarning())
	}
	f.mustLease(session)

	spare := f.spare()
	f.calibrate(session, 3, 1.2)
	if d := device(t, wired{f}, "runner"); d.GetState() != quarantined || d.GetWarning() != nil {
		t.Errorf("beside another device of its class it is %v", d)
	}
	must[*tilthv1.LeaveResponse](t)(f.agents.Leave(t.Context(), &tilthv1.LeaveRequest{Session: spare}))
	f.calibrate(session, 1, 1.2)
	wantDevice(t, device(t, wired{f}, "runner"), ready)
	f.calibrate(session, 1, 1)
	if d := device(t, wired{f}, "runner"); d.GetState() != ready || d.GetWarning() != nil {
		t.Errorf("when it measures as it should it is %v", d)
	}
}

// TestBusyMomentWhileJoiningIsNoQuarantine checks that load during a host's start, which ends within a minute, has
// no consequences.
func TestBusyMomentWhileJoiningIsNoQuarantine(t *testing.T) {
	c := newClock()
	f := newFarm(t, tracker.Config{Now: c.now})
	f.spare()
	session := f.calibratingRunner().GetSession()
	noisy := &tilthv1.CalibrationReport{
		Kernels: "k", ComputeSeconds: []float64{1e-3, 2e-3, 3e-3, 4e-3, 5e-3}, MemorySeconds: []float64{1e-3, 2e-3, 3e-3, 4e-3, 5e-3},
	}
	joined := c.now()
	for i := 0; device(t, wired{f}, "runner").GetState() == ready; i++ {
		if i > 20 {
			t.Fatal("a device that is noisy for ever is never quarantined")
		}
		for !f.heartbeat(session).GetCalibrate() {
			c.forward(time.Second)
		}
		must[*tilthv1.ReportCalibrationResponse](t)(wired{f}.client().ReportCalibration(t.Context(),
			&tilthv1.ReportCalibrationRequest{Session: session, Report: noisy}))
	}
	if took := c.now().Sub(joined); took < 5*time.Minute || took > 7*time.Minute {
		t.Errorf("it was quarantined after %v of noise, want some five minutes", took)
	}
	if got := device(t, wired{f}, "runner").GetQuarantine().GetReason(); !strings.Contains(got, "none of 8 calibrations was calm in 5m") {
		t.Errorf("the reason is %s", got)
	}
}

func TestMeasurementsDuringADeviceChangeAreInDoubt(t *testing.T) {
	c := newClock()
	f := newFarm(t, tracker.Config{Now: c.now})
	session := f.calibratingRunner().GetSession()
	f.calibrate(session, 5, 1)
	job := f.submit("r1", spec("before", "after", "slower"))
	tuner := f.mustLease(f.tuner()).GetLease()
	builder := f.builder()
	measure := func(proposal uint64, task uint32, name string, latency float64) {
		f.propose(tuner, proposal, task, name)
		f.reportBuild(f.buildReport(f.mustLease(builder)))
		w := f.mustLease(session)
		f.report(w.GetLease(), ok(w.GetMeasure().GetCandidates()[0], latency))
	}
	measure(0, 0, "a", 1)
	measure(1, 2, "c", 1)
	c.forward(time.Minute)
	f.calibrate(session, 1, 1)
	c.forward(time.Minute)
	measure(2, 1, "b", 1)
	measure(3, 2, "d", 2)
	f.calibrate(session, 3, 1.05)
	const n = 2 + 4*2 + 1
	events := f.events(job.GetId(), 1, n)
	s := events[n-1].GetSuspected()
	if s.GetTaskIndex() != 1 || string(s.GetCandidate().GetTrace()) != "b" || s.GetDevice() != "runner" || !strings.Contains(s.GetReason(), "changed by 5.0 %") {
		t.Fatalf("the last event is %v", events[n-1])
	}
	// The candidate is measured again. The record has the reason, and the new measurement is the best.
	c.forward(time.Second)
	again := must[*tilthv1.ProposeBatchResponse](t)(f.search.ProposeBatch(t.Context(), &tilthv1.ProposeBatchRequest{
		Lease: tuner, Proposal: 4, TaskIndex: 1, Candidates: candidates("b"), Mode: tilthv1.BatchMode_BATCH_MODE_FINALISTS, Remeasured: s.GetReason(),
	}))
	f.reportBuild(f.buildReport(f.mustLease(builder)))
	f.restart()
	w := f.mustLease(session)
	f.report(w.GetLease(), ok(w.GetMeasure().GetCandidates()[0], 1.5))
	trial := f.events(job.GetId(), n+2, 1)[0].GetTrial()
	if trial.GetBatchId() != again.GetBatchId() || trial.GetMeasurement().GetRemeasured() != s.GetReason() {
		t.Errorf("the trial is %v", trial)
	}
	if p := f.job(job.GetId()).GetProgress()[1]; p.GetBestSeconds() != 1.5 {
		t.Errorf("the best is still %v", p.GetBestSeconds())
	}
	best := must[*tilthv1.BestRecordsResponse](t)(f.records.BestRecords(t.Context(), &tilthv1.BestRecordsRequest{
		Target: "cpu-1", WorkloadDigests: []string{spec("after").GetTasks()[0].GetWorkloadDigest()},
	})).GetRecords()
	if len(best) != 1 || best[0].GetMeasurement().GetLatencySeconds() != 1.5 || best[0].GetMeasurement().GetRemeasured() == "" {
		t.Errorf("the best record is %v", best)
	}
}

// TestBestOfAnEndedJobIsInDoubtToo checks that the next job of the workload remeasures it, even if that job
// measures for a shorter time.
func TestBestOfAnEndedJobIsInDoubtToo(t *testing.T) {
	c := newClock()
	f := newFarm(t, tracker.Config{Now: c.now})
	session, builder := f.calibratingRunner().GetSession(), f.builder()
	f.calibrate(session, 5, 1)
	work := spec("conv")
	best := func() *tilthv1.Measurement {
		t.Helper()
		found := must[*tilthv1.BestRecordsResponse](t)(f.records.BestRecords(t.Context(), &tilthv1.BestRecordsRequest{
			Target: "cpu-1", WorkloadDigests: []string{work.GetTasks()[0].GetWorkloadDigest()},
		})).GetRecords()
		if len(found) != 1 {
			t.Fatalf("the best records are %v", found)
		}
		return found[0].GetMeasurement()
	}
	run := func(request string, samples int, latency float64) {
		t.Helper()
		c.forward(time.Minute)
		f.submit(request, work)
		tuner := f.mustLease(f.tuner()).GetLease()
		f.propose(tuner, 0, 0, "a")
		f.reportBuild(f.buildReport(f.mustLease(builder)))
		w := f.mustLease(session)
		m := ok(w.GetMeasure().GetCandidates()[0], latency)
		m.SamplesSeconds = slices.Repeat([]float64{latency}, samples)
		f.report(w.GetLease(), m)
		must[*tilthv1.FinishJobResponse](t)(f.search.FinishJob(t.Context(), &tilthv1.FinishJobRequest{Lease: tuner, State: tilthv1.JobState_JOB_STATE_DONE}))
	}
	run("r1", 20, 1)
	f.calibrate(session, 3, 1.05)
	if m := best(); !strings.Contains(m.GetSuspected(), "changed by 5.0 %") || m.GetLatencySeconds() != 1 {
		t.Fatalf("the best is %v", m)
	}
	run("r2", 5, 1.05)
	if m := best(); m.GetSuspected() != "" || m.GetLatencySeconds() != 1.05 {
		t.Errorf("measured again, the best is %v", m)
	}
}

func TestInvalidCalibrationsAreRefused(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	session := f.calibratingRunner().GetSession()
	report := func(session string, r *tilthv1.CalibrationReport) error {
		_, err := wired{f}.client().ReportCalibration(t.Context(), &tilthv1.ReportCalibrationRequest{Session: session, Report: r})
		return err
	}
	good := []float64{1}
	wantStatus(t, report("void", &tilthv1.CalibrationReport{Kernels: "k", ComputeSeconds: good, MemorySeconds: good}), codes.NotFound, wire.ReasonVoidSession, "join again")
	wantStatus(t, report(f.tuner(), &tilthv1.CalibrationReport{Kernels: "k", ComputeSeconds: good, MemorySeconds: good}), codes.InvalidArgument, "", "not a runner")
	for name, r := range map[string]*tilthv1.CalibrationReport{
		"kernels": {ComputeSeconds: good, MemorySeconds: good},
		"compute": {Kernels: "k", MemorySeconds: good},
		"memory":  {Kernels: "k", ComputeSeconds: good, MemorySeconds: []float64{1, 0}},
		"holds":   {Kernels: "k", ComputeSeconds: []float64{math.Inf(1)}, MemorySeconds: good},
		"items":   {Kernels: "k", ComputeSeconds: make([]float64, 2000), MemorySeconds: good},
	} {
		wantStatus(t, report(session, r), codes.InvalidArgument, "", name)
	}
}
