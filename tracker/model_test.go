package tracker_test

import (
	"math"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// modelSpec returns the specification of a job with an uploaded model.
func (f *trackerFarm) modelSpec() *tilthv1.JobSpec {
	f.Helper()
	s := spec()
	s.Owner, s.Target = "anna", &tilthv1.TargetSpec{DeviceClass: "x86"}
	s.Model = &tilthv1.ModelSpec{File: f.upload("model")}
	return s
}

// others returns uploaded models with the given weights.
func (f *trackerFarm) others(weights ...float64) (others []*tilthv1.OtherModel) {
	f.Helper()
	for _, w := range weights {
		others = append(others, &tilthv1.OtherModel{File: f.upload("another"), Weight: w})
	}
	return others
}

// reader joins as a tuner that reads models.
func (f *trackerFarm) reader(name string) string {
	f.Helper()
	s := agentSpec(name, tilthv1.AgentKind_AGENT_KIND_TUNER)
	s.Capabilities = []string{"model"}
	return must[*tilthv1.JoinResponse](f)(f.agents.Join(f.Context(), &tilthv1.JoinRequest{Spec: s})).GetSession()
}

// was returns a tuner's report of a model's tasks.
func was(lease *tilthv1.LeaseToken, tasks ...string) *tilthv1.ReportModelRequest {
	s := spec(tasks...)
	return &tilthv1.ReportModelRequest{Lease: lease, Target: s.GetTarget(), Tasks: s.GetTasks()}
}

func (f *trackerFarm) reportModel(r *tilthv1.ReportModelRequest) {
	f.Helper()
	must[*tilthv1.ReportModelResponse](f)(f.search.ReportModel(f.Context(), r))
}

// wantFailed checks that a job failed with a reason.
func (f *trackerFarm) wantFailed(id, reason string) {
	f.Helper()
	if j := f.job(id); j.GetState() != tilthv1.JobState_JOB_STATE_FAILED || !strings.Contains(j.GetReason(), reason) {
		f.Errorf("the job is %v: %q, want it failed: %q", j.GetState(), j.GetReason(), reason)
	}
}

func TestModelIsReadOnceAndTunedLikeAnyOtherJob(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	builder, runner := f.builder(), f.runner()
	job := f.submit("r1", f.modelSpec())
	if job.GetState() != tilthv1.JobState_JOB_STATE_READING {
		t.Errorf("the job is %v", job.GetState())
	}
	session := f.reader("reader")
	w := f.mustLease(session)
	if m := w.GetModel(); !proto.Equal(m.GetJob().GetSpec(), job.GetSpec()) || m.GetDeviceClass().GetName() != "x86" || strings.Join(m.GetToolchains(), " ") != "clang-19" {
		t.Errorf("the tuner got %v", w)
	}
	f.restart()
	for range 2 { // the answer was lost
		f.reportModel(was(w.GetLease(), "conv", "pool"))
		f.restart()
	}
	j := f.job(job.GetId())
	if j.GetState() != tilthv1.JobState_JOB_STATE_QUEUED || len(j.GetSpec().GetTasks()) != 2 || len(j.GetProgress()) != 2 || j.GetSpec().GetTarget().GetFingerprint() != "cpu-1" {
		t.Errorf("the job is %v", j)
	}
	if j.GetReason() != "reader read the model: tasks: 2" || j.GetStartedAt() != nil || j.GetTimeSpent() != nil {
		t.Errorf("the job is %v", j)
	}
	search := f.mustLease(session)
	if n := len(search.GetSearch().GetJob().GetSpec().GetTasks()); n != 2 {
		t.Errorf("%d tasks are searched", n)
	}
	f.propose(search.GetLease(), 0, 1, "a")
	f.reportBuild(f.buildReport(f.mustLease(builder)))
	measure := f.mustLease(runner)
	f.report(measure.GetLease(), ok(measure.GetMeasure().GetCandidates()[0], 1))
	must[*tilthv1.FinishJobResponse](t)(f.search.FinishJob(t.Context(), &tilthv1.FinishJobRequest{Lease: search.GetLease(), State: tilthv1.JobState_JOB_STATE_DONE}))
	if got := describe(f.events(job.GetId(), 0, 7)); got != "reading, reading, queued, running, proposed 0×1, trial 1.0 a 1, done" {
		t.Errorf("events %s", got)
	}
	if again := f.submit("r1", f.modelSpec()); again.GetId() != job.GetId() {
		t.Errorf("the request, repeated, made job %s", again.GetId())
	}
}

func TestModelThatCannotBeTunedFailsItsJob(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.builder()
	f.runner()
	job := f.submit("r1", f.modelSpec())
	report := &tilthv1.ReportModelRequest{Lease: f.mustLease(f.reader("reader")).GetLease(), Failure: "no ONNX file"}
	for range 2 {
		f.reportModel(report)
	}
	f.wantFailed(job.GetId(), "no ONNX file")
}

func TestLostReaderIsAnotherLeaseAndItsReportIsStale(t *testing.T) {
	f := newFarm(t, tracker.Config{MaxAttempts: 2})
	f.builder()
	f.runner()
	job := f.submit("r1", f.modelSpec())
	lost := f.mustLease(f.reader("reader")).GetLease()
	session := f.reader("reader") // invalidates the first session
	if s := f.job(job.GetId()).GetState(); s != tilthv1.JobState_JOB_STATE_READING {
		t.Errorf("the job is %v", s)
	}
	lease := f.mustLease(session).GetLease()
	for _, late := range []*tilthv1.ReportModelRequest{was(lost, "other"), {Lease: lost, Failure: "no"}, {Lease: lost, InfraMessage: "no"}} {
		_, err := f.search.ReportModel(t.Context(), late)
		wantStale(t, err)
	}
	f.reportModel(was(lease, "conv"))
	_, err := f.search.ReportModel(t.Context(), was(lost, "other"))
	wantStale(t, err)
	if tasks := f.job(job.GetId()).GetSpec().GetTasks(); len(tasks) != 1 || tasks[0].GetName() != "conv" {
		t.Errorf("the tasks are %v", tasks)
	}
	_, err = f.search.FinishJob(t.Context(), &tilthv1.FinishJobRequest{Lease: f.mustLease(session).GetLease(), State: tilthv1.JobState_JOB_STATE_DONE})
	if err != nil {
		t.Error(err)
	}
}

func TestModelIsGivenUpAfterSoManyAttemptsThatAreNotItsFault(t *testing.T) {
	f := newFarm(t, tracker.Config{MaxAttempts: 2})
	f.builder()
	f.runner()
	session := f.reader("reader")
	job := f.submit("r1", f.modelSpec())
	for range 2 {
		f.reportModel(&tilthv1.ReportModelRequest{Lease: f.mustLease(session).GetLease(), InfraMessage: "no process starts"})
	}
	f.wantFailed(job.GetId(), "given up after repeated loss of its tuner: no process starts")
}

func TestJobSaysThatNobodyReadsItsModel(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	job := f.submit("r1", f.modelSpec())
	check := func() *tilthv1.Wait {
		return must[*tilthv1.CheckFarmResponse](t)(f.jobs.CheckFarm(t.Context(), &tilthv1.CheckFarmRequest{DeviceClass: "x86", Tuner: "random", Model: true})).GetWait()
	}
	f.wantWait(job.GetId(), tilthv1.WaitReason_WAIT_REASON_NO_DEVICE, true, "no device of class x86 is joined")
	reader := f.reader("reader")
	if f.lease(reader).GetLease() != nil {
		t.Error("a model was given out for a device that nobody knows")
	}
	f.runner()
	f.wantWait(job.GetId(), tilthv1.WaitReason_WAIT_REASON_NO_BUILDER, true, "no builder is joined", "'tilth builder'")
	if f.lease(reader).GetLease() != nil {
		t.Error("a model was given out for a toolchain that nobody has")
	}
	f.builder()
	must[*tilthv1.LeaveResponse](t)(f.agents.Leave(t.Context(), &tilthv1.LeaveRequest{Session: reader}))
	old := f.tuner()
	if f.lease(old).GetLease() != nil {
		t.Error("a tuner that reads no models was given one")
	}
	f.wantWait(job.GetId(), tilthv1.WaitReason_WAIT_REASON_NO_TUNER, true, "no tuner that reads models is joined (reader is gone since", "tuner cannot read models", "'tilth tuner'")
	if w := check(); w.GetReason() != tilthv1.WaitReason_WAIT_REASON_NO_TUNER {
		t.Errorf("the farm says %v", w)
	}
	reader = f.reader("reader")
	f.wantWait(job.GetId(), tilthv1.WaitReason_WAIT_REASON_TURN, false, "queued for a tuner that reads models")
	if w := check(); w != nil {
		t.Errorf("the farm says %v", w)
	}
	f.mustLease(reader)
	f.wantWait(job.GetId(), nothing, false)
}

func TestModelWaitsWhileItsJobIsPaused(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.builder()
	f.runner()
	session := f.reader("reader")
	job := f.submit("r1", f.modelSpec())
	lease := f.mustLease(session).GetLease()
	must[*tilthv1.PauseJobResponse](t)(f.jobs.PauseJob(t.Context(), &tilthv1.PauseJobRequest{JobId: job.GetId()}))
	_, err := f.search.ReportModel(t.Context(), was(lease, "conv"))
	wantStale(t, err)
	if f.lease(session).GetLease() != nil {
		t.Error("the model of a paused job was given out")
	}
	must[*tilthv1.ResumeJobResponse](t)(f.jobs.ResumeJob(t.Context(), &tilthv1.ResumeJobRequest{JobId: job.GetId()}))
	f.reportModel(was(f.mustLease(session).GetLease(), "conv"))
	if got := describe(f.events(job.GetId(), 0, 6)); got != "reading, reading, paused, reading, reading, queued" {
		t.Errorf("events %s", got)
	}
}

func TestModelIsKeptUntilItWasRead(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.builder()
	f.runner()
	session := f.reader("reader")
	read := f.submit("r1", f.modelSpec())
	f.reportModel(was(f.mustLease(session).GetLease(), "conv"))
	search := f.mustLease(session)
	damaged := f.submit("r2", f.modelSpec())
	digest := damaged.GetSpec().GetModel().GetFile().GetDigest()
	f.stop()
	f.rot(digest)
	f.start()
	if err := f.download(digest); err == nil {
		t.Error("a damaged model is served")
	}
	f.wantFailed(damaged.GetId(), "was damaged: submit it again")
	if j := f.job(read.GetId()); j.GetState() != tilthv1.JobState_JOB_STATE_RUNNING || search.GetLease() == nil {
		t.Errorf("the job whose model was read is %v", j)
	}
}

// TestAllFilesOfAJobWithModelsAreKept until they are read, including those of other models and seeds.
func TestAllFilesOfAJobWithModelsAreKept(t *testing.T) {
	for name, of := range map[string]func(m *tilthv1.ModelSpec) *tilthv1.ArtifactRef{
		"another model": func(m *tilthv1.ModelSpec) *tilthv1.ArtifactRef { return m.GetOthers()[0].GetFile() },
		"seeds":         func(m *tilthv1.ModelSpec) *tilthv1.ArtifactRef { return m.GetSeeds()[0].GetFile() },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFarm(t, tracker.Config{})
			s := f.modelSpec()
			s.Model.Others = f.others(1, 2) // the same model twice
			s.Model.Seeds = []*tilthv1.SeedFile{{File: f.upload("seeds"), Format: tilthv1.SeedFormat_SEED_FORMAT_ANSOR}}
			job := f.submit("r1", s)
			digest := of(job.GetSpec().GetModel()).GetDigest()
			f.stop()
			f.rot(digest)
			f.start()
			if err := f.download(digest); err == nil {
				t.Error("a damaged file is served")
			}
			f.wantFailed(job.GetId(), "was damaged: submit it again")
		})
	}
}

func TestTasksOfAModelAreNoMoreThanItsOwnerMayHave(t *testing.T) {
	f := newFarm(t, tracker.Config{Shares: policy.Shares{Default: policy.Share{StoredBytes: 2000}}})
	f.builder()
	f.runner()
	job := f.submit("r1", f.modelSpec())
	big := was(f.mustLease(f.reader("reader")).GetLease(), strings.Repeat("x", 2000))
	for range 2 {
		f.reportModel(big)
	}
	f.wantFailed(job.GetId(), `owner "anna" has open jobs of`)
}

func TestInvalidModelsAreRefused(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	submit := func(change func(s *tilthv1.JobSpec)) error {
		s := f.modelSpec()
		change(s)
		return f.trySubmit("r", s)
	}
	for name, change := range map[string]func(s *tilthv1.JobSpec){
		"device_class": func(s *tilthv1.JobSpec) { s.Target = nil },
		"spec.target":  func(s *tilthv1.JobSpec) { s.Target.Fingerprint = "x" },
		"spec.tasks":   func(s *tilthv1.JobSpec) { s.Tasks = spec("conv").GetTasks() },
		"spec.budget":  func(s *tilthv1.JobSpec) { s.Budget = nil },
		"spec.tuner":   func(s *tilthv1.JobSpec) { s.Tuner = "" },
		"digest":       func(s *tilthv1.JobSpec) { s.Model.File.Digest = "x" },
		"weight_bits":  func(s *tilthv1.JobSpec) { s.Model.WeightBits = 3 },
		"spec.model":   func(s *tilthv1.JobSpec) { s.Run = f.runSpec("").GetRun(); s.Tuner, s.Budget = "", nil },
		"model.open": func(s *tilthv1.JobSpec) {
			s.Model.Shapes = map[string]*tilthv1.Extents{"n": {Extents: []int64{1}}}
			s.Model.Open = map[string]*tilthv1.ExtentBounds{"n": {Least: 1, Most: 2}}
		},
		"model.weight":          func(s *tilthv1.JobSpec) { s.Model.Weight = -1 },
		"others[1].weight":      func(s *tilthv1.JobSpec) { s.Model.Others = f.others(1, math.Inf(1)) },
		"others[0].file.digest": func(s *tilthv1.JobSpec) { s.Model.Others = []*tilthv1.OtherModel{{}} },
		"task_weights[1].weight": func(s *tilthv1.JobSpec) {
			s.Model.TaskWeights = []*tilthv1.TaskWeight{{Weight: 1, Tasks: "0"}, {Tasks: "1"}}
		},
		"task_weights[0].tasks": func(s *tilthv1.JobSpec) { s.Model.TaskWeights = []*tilthv1.TaskWeight{{Weight: 1}} },
		"whose place they take": func(s *tilthv1.JobSpec) {
			s.Model.Others, s.Model.TaskWeights = f.others(2), []*tilthv1.TaskWeight{{Weight: 1, Tasks: "0"}}
		},
		"both say which tasks": func(s *tilthv1.JobSpec) {
			s.Model.Tasks, s.Model.TaskWeights = "0", []*tilthv1.TaskWeight{{Weight: 1, Tasks: "0"}}
		},
		"seeds[0].format":      func(s *tilthv1.JobSpec) { s.Model.Seeds = []*tilthv1.SeedFile{{File: s.Model.File}} },
		"seeds[0].file.digest": func(s *tilthv1.JobSpec) { s.Model.Seeds = []*tilthv1.SeedFile{{Format: 1}} },
		"frequencies": func(s *tilthv1.JobSpec) {
			s.Model.Open = map[string]*tilthv1.ExtentBounds{"n": {Least: 1, Most: 2, Frequencies: map[int64]float64{1: math.NaN()}}}
		},
		"has caps and frequencies": func(s *tilthv1.JobSpec) {
			s.Model.Open = map[string]*tilthv1.ExtentBounds{"n": {Least: 1, Most: 2, Caps: []int64{1}, Frequencies: map[int64]float64{1: 1}}}
		},
		"model.others": func(s *tilthv1.JobSpec) { s.Model.Others = f.others(make([]float64, 64)...) },
		"items":        func(s *tilthv1.JobSpec) { s.Model.From = make([]string, 300) },
	} {
		wantStatus(t, submit(change), codes.InvalidArgument, "", name)
	}
	missing := submit(func(s *tilthv1.JobSpec) { s.Model.File.Digest = records.Digest([]byte("nowhere")) })
	wantStatus(t, missing, codes.FailedPrecondition, wire.ReasonMissingArtifact, "upload it")
	nowhere := &tilthv1.ArtifactRef{Digest: records.Digest([]byte("nowhere"))}
	missing = submit(func(s *tilthv1.JobSpec) { s.Model.Others = []*tilthv1.OtherModel{{File: nowhere}} })
	wantStatus(t, missing, codes.FailedPrecondition, wire.ReasonMissingArtifact, "upload it")
	missing = submit(func(s *tilthv1.JobSpec) { s.Model.Seeds = []*tilthv1.SeedFile{{File: nowhere, Format: 1}} })
	wantStatus(t, missing, codes.FailedPrecondition, wire.ReasonMissingArtifact, "upload it")

	f.builder()
	f.runner()
	f.submit("good", f.modelSpec())
	lease := f.mustLease(f.reader("reader")).GetLease()
	for name, change := range map[string]func(r *tilthv1.ReportModelRequest){
		"0 of them":       func(r *tilthv1.ReportModelRequest) { r.Tasks = nil },
		"2 of them":       func(r *tilthv1.ReportModelRequest) { r.Failure = "both" },
		"fingerprint":     func(r *tilthv1.ReportModelRequest) { r.Target.Fingerprint = "" },
		"workload_digest": func(r *tilthv1.ReportModelRequest) { r.Tasks[0].WorkloadDigest = "x" },
		"device_class":    func(r *tilthv1.ReportModelRequest) { r.Target.DeviceClass = "arm" },
	} {
		r := was(lease, "conv")
		change(r)
		_, err := f.search.ReportModel(t.Context(), r)
		wantStatus(t, err, codes.InvalidArgument, "", name)
	}
	_, err := f.search.FinishJob(t.Context(), &tilthv1.FinishJobRequest{Lease: lease, State: tilthv1.JobState_JOB_STATE_DONE})
	wantStale(t, err)
	f.reportModel(was(lease, "conv"))
}

// modelCall reports the outcome of reading a model.
func (l *lossy) modelCall() {
	l.Helper()
	job := l.submit("model", l.modelSpec())
	session := l.reader("reader")
	l.reportModel(was(l.mustLease(session).GetLease(), "conv"))
	must[*tilthv1.CancelJobResponse](l)(l.jobs.CancelJob(l.Context(), &tilthv1.CancelJobRequest{JobId: job.GetId()}))
	if got := describe(l.events(job.GetId(), 0, 4)); got != "reading, reading, queued, cancelled" {
		l.Errorf("events of the model: %s", got)
	}
}

// TestPagesShowAModelBeforeAndAfterItIsRead checks the job's page in both states.
func TestPagesShowAModelBeforeAndAfterItIsRead(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	pages := f.tracker.HTTPHandler()
	id := f.submit("r1", f.modelSpec()).GetId()
	wantPage(t, pages, "/jobs?state=open", []string{id, "reading"}, nil)
	wantPage(t, pages, "/jobs?state=reading", []string{id}, nil)
	f.builder()
	f.runner()
	wantPage(t, pages, "/jobs/"+id, []string{"reading", "no tuner that reads models is joined"}, nil)
	lease := f.mustLease(f.reader("reader")).GetLease()
	wantPage(t, pages, "/jobs/"+id, []string{"reading", "reader reads the model"}, nil)
	f.reportModel(was(lease, "conv2d of the model"))
	wantPage(t, pages, "/jobs/"+id, []string{"queued", "conv2d of the model", "reader read the model: tasks: 1"}, nil)
}
