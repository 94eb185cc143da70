package tracker_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// runSpec returns the specification of a job that runs an uploaded package.
func (f *trackerFarm) runSpec(device string) *tilthv1.JobSpec {
	f.Helper()
	return &tilthv1.JobSpec{
		Name: "run", Owner: "anna", Target: &tilthv1.TargetSpec{DeviceClass: "x86"},
		Run: &tilthv1.RunSpec{
			Packages: []*tilthv1.RunPackage{{Name: "m.tar", Artifact: f.upload("package")}}, Repeat: 3, Number: 1, Device: device,
		},
	}
}

// able joins as a runner that runs packages.
func (f *trackerFarm) able(name string) string {
	f.Helper()
	s := agentSpec(name, tilthv1.AgentKind_AGENT_KIND_RUNNER)
	s.Capabilities = []string{"run", "calibrate"}
	return must[*tilthv1.JoinResponse](f)(f.agents.Join(f.Context(), &tilthv1.JoinRequest{Spec: s})).GetSession()
}

func (f *trackerFarm) runs() tilthv1.RunServiceClient { return tilthv1.NewRunServiceClient(f.conn) }

// result returns a report of a run of one package.
func result(lease *tilthv1.LeaseToken) *tilthv1.ReportRunRequest {
	return &tilthv1.ReportRunRequest{Lease: lease, Result: &tilthv1.RunResult{Packages: []*tilthv1.PackageResult{{SamplesSeconds: []float64{1, 2, 3}}}}}
}

func (f *trackerFarm) reportRun(r *tilthv1.ReportRunRequest) {
	f.Helper()
	must[*tilthv1.ReportRunResponse](f)(f.runs().ReportRun(f.Context(), r))
}

func TestRunGoesToADeviceThatKnowsOfRunsOnce(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	old := f.join("old", tilthv1.AgentKind_AGENT_KIND_RUNNER)
	job := f.submit("r1", f.runSpec(""))
	if f.lease(old).GetLease() != nil {
		t.Error("an agent that does not know of runs was given one")
	}
	session := f.able("board")
	w := f.mustLease(session)
	if !proto.Equal(w.GetRun().GetJob().GetSpec().GetRun(), job.GetSpec().GetRun()) {
		t.Errorf("the runner got %v", w)
	}
	f.restart()
	for range 2 { // the answer was lost
		f.reportRun(result(w.GetLease()))
		f.restart()
	}
	done := f.job(job.GetId())
	if done.GetState() != tilthv1.JobState_JOB_STATE_DONE || done.GetResult().GetDevice() != "board" || len(done.GetResult().GetPackages()[0].GetSamplesSeconds()) != 3 {
		t.Errorf("the job ended as %v", done)
	}
	if got := describe(f.events(job.GetId(), 0, 3)); got != "queued, running, done" {
		t.Errorf("events %s", got)
	}
}

func TestRunOfADeviceWaitsForIt(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	job := f.submit("r1", f.runSpec("second"))
	if f.lease(f.able("first")).GetLease() != nil {
		t.Error("another device was given the run")
	}
	f.reportRun(result(f.mustLease(f.able("second")).GetLease()))
	if got := f.job(job.GetId()).GetResult().GetDevice(); got != "second" {
		t.Errorf("it ran on %q", got)
	}
}

func TestRunIsTriedAgainWhereTheDeviceFailsAndNotWhereThePackageDoes(t *testing.T) {
	f := newFarm(t, tracker.Config{FirstRetry: -1, MaxAttempts: 2})
	session := f.able("board")
	infra := func(w *tilthv1.LeaseWorkResponse) *tilthv1.ReportRunRequest {
		return &tilthv1.ReportRunRequest{Lease: w.GetLease(), InfraError: tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA, InfraMessage: "no memory"}
	}
	job := f.submit("r1", f.runSpec(""))
	first := infra(f.mustLease(session))
	f.reportRun(first)
	f.reportRun(first)
	f.reportRun(infra(f.mustLease(session)))
	if j := f.job(job.GetId()); j.GetState() != tilthv1.JobState_JOB_STATE_FAILED || j.GetReason() != "given up after repeated loss of its runner: no memory" {
		t.Errorf("the job ended as %v: %q", j.GetState(), j.GetReason())
	}
	job = f.submit("r2", f.runSpec(""))
	f.reportRun(&tilthv1.ReportRunRequest{Lease: f.mustLease(session).GetLease(), Failure: "crashes"})
	if j := f.job(job.GetId()); j.GetState() != tilthv1.JobState_JOB_STATE_FAILED || j.GetReason() != "crashes" {
		t.Errorf("the job ended as %v: %q", j.GetState(), j.GetReason())
	}
}

func TestCancelledRunIsDropped(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	session := f.able("board")
	job := f.submit("r1", f.runSpec(""))
	lease := f.mustLease(session).GetLease()
	must[*tilthv1.CancelJobResponse](t)(f.jobs.CancelJob(t.Context(), &tilthv1.CancelJobRequest{JobId: job.GetId()}))
	beat := must[*tilthv1.HeartbeatResponse](t)(f.agents.Heartbeat(t.Context(), &tilthv1.HeartbeatRequest{Session: session, Leases: []*tilthv1.LeaseToken{lease}}))
	if len(beat.GetDropped()) != 1 {
		t.Error("the runner does not hear of it")
	}
	_, err := f.runs().ReportRun(t.Context(), result(lease))
	wantStale(t, err)
}

func TestInvalidRunsAreRefused(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	submit := func(change func(s *tilthv1.JobSpec)) error {
		s := f.runSpec("")
		change(s)
		_, err := f.jobs.SubmitJob(t.Context(), &tilthv1.SubmitJobRequest{RequestId: "r", Spec: s})
		return err
	}
	for name, change := range map[string]func(s *tilthv1.JobSpec){
		"device_class": func(s *tilthv1.JobSpec) { s.Target = nil },
		"tasks":        func(s *tilthv1.JobSpec) { s.Tasks = spec("conv").GetTasks() },
		"kernels":      func(s *tilthv1.JobSpec) { s.Kernels = [][]byte{[]byte("{}")} },
		"packages":     func(s *tilthv1.JobSpec) { s.Run.Packages = nil },
		"digest":       func(s *tilthv1.JobSpec) { s.Run.Packages[0].Artifact.Digest = "x" },
		"several": func(s *tilthv1.JobSpec) {
			s.Run.Packages = append(s.Run.Packages, s.Run.Packages[0])
			s.Run.Outputs = true
		},
		"repeat": func(s *tilthv1.JobSpec) { s.Run.Repeat = 1e6 },
		"number": func(s *tilthv1.JobSpec) { s.Run.Number = 0 },
		"limit":  func(s *tilthv1.JobSpec) { s.Run.Limit = durationpb.New(2 * time.Hour) },
	} {
		wantStatus(t, submit(change), codes.InvalidArgument, "", name)
	}
	missing := submit(func(s *tilthv1.JobSpec) {
		s.Run.Inputs = &tilthv1.ArtifactRef{Digest: records.Digest([]byte("nowhere"))}
	})
	wantStatus(t, missing, codes.FailedPrecondition, wire.ReasonMissingArtifact, "upload it")
	session := f.able("board")
	f.submit("good", f.runSpec(""))
	lease := f.mustLease(session).GetLease()
	for name, r := range map[string]*tilthv1.ReportRunRequest{
		"not one":    {Lease: lease},
		"packages":   {Lease: lease, Result: &tilthv1.RunResult{}},
		"infra":      {Lease: lease, InfraError: tilthv1.ErrorClass_ERROR_CLASS_CRASH},
		"not one ":   {Lease: lease, Result: &tilthv1.RunResult{}, Failure: "both"},
		"of outputs": {Lease: lease, Failure: "x", InfraError: tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA},
	} {
		if _, err := f.runs().ReportRun(t.Context(), r); err == nil {
			t.Errorf("%s: a report was taken that cannot be", name)
		}
	}
	_, err := f.search.FinishJob(t.Context(), &tilthv1.FinishJobRequest{Lease: lease, State: tilthv1.JobState_JOB_STATE_DONE})
	wantStale(t, err)
	f.reportRun(result(lease))
}

// deviceCalls makes each changing call about devices and runs.
func (l *lossy) deviceCalls() {
	l.Helper()
	session := l.able("board")
	devices := wired{l.trackerFarm}
	cordon(l, devices, "board", "fan", 0)
	uncordon(l, devices, "board")
	must[*tilthv1.DrainDeviceResponse](l)(devices.DrainDevice(l.Context(), &tilthv1.DrainDeviceRequest{Name: "board", By: "anna"}))
	must[*tilthv1.RecalibrateDeviceResponse](l)(devices.client().RecalibrateDevice(l.Context(), &tilthv1.RecalibrateDeviceRequest{Name: "board", By: "anna"}))
	must[*tilthv1.ReportCalibrationResponse](l)(devices.client().ReportCalibration(l.Context(), &tilthv1.ReportCalibrationRequest{
		Session: session, Report: &tilthv1.CalibrationReport{Kernels: "k", ComputeSeconds: []float64{1}, MemorySeconds: []float64{1}, Number: 1},
	}))
	d := device(l, devices, "board")
	if got, want := changes(d), "cordoned by anna: fan; ready by bert: ; cordoned by anna: ; cordoned by anna: recalibrated"; got != want {
		l.Errorf("history %q, want %q", got, want)
	}
	if n := len(d.GetCalibration().GetLearning()); n != 1 {
		l.Errorf("%d calibrations were taken in", n)
	}
	uncordon(l, devices, "board")
	job := l.submit("third", l.runSpec("board"))
	l.reportRun(result(l.mustLease(session).GetLease()))
	if got := describe(l.events(job.GetId(), 0, 3)); got != "queued, running, done" {
		l.Errorf("events of the run: %s", got)
	}
}
