package tracker_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/internal/artifact"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// packager joins as a builder that makes packages.
func (f *trackerFarm) packager(name string) string {
	f.Helper()
	s := agentSpec(name, tilthv1.AgentKind_AGENT_KIND_BUILDER)
	s.Capabilities = []string{"run"}
	return must[*tilthv1.JoinResponse](f)(f.agents.Join(f.Context(), &tilthv1.JoinRequest{Spec: s})).GetSession()
}

// tuned returns a job whose model was read, and which has ended.
func (f *trackerFarm) tuned(request string, change func(s *tilthv1.JobSpec)) (id string) {
	f.Helper()
	s := f.modelSpec()
	change(s)
	id = f.submit(request, s).GetId()
	f.builder()
	f.runner()
	session := f.reader("reader")
	f.reportModel(was(f.mustLease(session).GetLease(), "conv"))
	must[*tilthv1.FinishJobResponse](f)(f.search.FinishJob(f.Context(), &tilthv1.FinishJobRequest{
		Lease: f.mustLease(session).GetLease(), State: tilthv1.JobState_JOB_STATE_DONE,
	}))
	return id
}

func asItIs(*tilthv1.JobSpec) {}

func (f *trackerFarm) makePackage(id string) *tilthv1.Job {
	f.Helper()
	return must[*tilthv1.MakePackageResponse](f)(f.jobs.MakePackage(f.Context(), &tilthv1.MakePackageRequest{JobId: id})).GetJob()
}

// TestPackageIsMadeOnce checks the work of the builder, restarts of the tracker at each step, and repeated requests.
func TestPackageIsMadeOnce(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	id := f.tuned("r", func(s *tilthv1.JobSpec) { s.Model.Tasks, s.Priority, s.Numerics = "0", 7, "fast" })
	pages := f.tracker.HTTPHandler()
	wantPage(t, pages, "/jobs/"+id, []string{"/actions/package", "tilth compile"}, []string{"<h2>Package"})
	made := f.makePackage(id)
	f.restart()
	if again := f.makePackage(id); again.GetId() != made.GetId() || again.GetWait().GetReason() != tilthv1.WaitReason_WAIT_REASON_UNSPECIFIED {
		t.Errorf("a repeated request makes %v", again)
	}
	f.wantWait(made.GetId(), tilthv1.WaitReason_WAIT_REASON_NO_BUILDER, true, "no builder that makes packages with clang-19 is joined", "builder does not run or make packages")
	wantPage(t, f.tracker.HTTPHandler(), "/jobs/"+id, []string{"<h2>Package", made.GetId(), "no builder that makes packages with clang-19"}, []string{"/packages/0"})
	if f.lease(f.builder()).GetLease() != nil {
		t.Error("a builder that makes no packages was given one")
	}
	w := f.mustLease(f.packager("packager"))
	got, tuned := w.GetRun().GetJob().GetSpec(), f.job(id).GetSpec()
	if got.GetRun().GetPackageOf() != id || got.GetTarget().GetFingerprint() != "cpu-1" || got.GetModel().GetFile().GetDigest() != tuned.GetModel().GetFile().GetDigest() ||
		got.GetModel().GetTasks() != "" || len(got.GetTasks()) > 0 || got.GetOwner() != tuned.GetOwner() || got.GetPriority() != 7 || got.GetNumerics() != "fast" {
		t.Errorf("the builder got %v", got)
	}
	f.restart()
	_, err := f.runs().ReportRun(t.Context(), &tilthv1.ReportRunRequest{Lease: w.GetLease(), Result: &tilthv1.RunResult{}})
	wantCode(t, "a result without a package", err, codes.InvalidArgument, "result.outputs")
	report := &tilthv1.ReportRunRequest{Lease: w.GetLease(), Result: &tilthv1.RunResult{Outputs: f.upload("a package")}}
	for range 2 { // the answer was lost
		f.reportRun(report)
		f.restart()
	}
	if got := describe(f.events(made.GetId(), 0, 3)); got != "queued, running, done" {
		t.Errorf("events %s", got)
	}
	if again := f.makePackage(id); again.GetId() != made.GetId() || again.GetReason() != "compiled by packager" {
		t.Errorf("a request after the package was made makes %v", again)
	}
	if last := f.job(id).GetPackageJobId(); last != made.GetId() {
		t.Errorf("the job's package is that of %q", last)
	}
	pages = f.tracker.HTTPHandler()
	for _, page := range []string{id, made.GetId()} {
		wantPage(t, pages, "/jobs/"+page, []string{"/jobs/" + made.GetId() + "/packages/0", "resnet18.tar"}, nil)
	}
	wantPage(t, pages, "/jobs/"+made.GetId(), []string{"ran on</span> packager"}, []string{"<h2>Tasks", "/actions/clone", "/actions/package"})
	if w := get(pages, "/jobs/"+made.GetId()+"/packages/0"); w.Body.String() != "a package" || w.Header().Get("Content-Disposition") != "attachment; filename=resnet18.tar" {
		t.Errorf("downloaded is %q, %v", w.Body.String(), w.Header())
	}
}

// TestPackageIsMadeAgainAfterAFailure checks that a failure, a cancellation, a deletion and the loss of the package
// each permit another attempt, and that the page shows the failure.
func TestPackageIsMadeAgainAfterAFailure(t *testing.T) {
	f := newFarm(t, tracker.Config{FirstRetry: -1, MaxAttempts: 2})
	id := f.tuned("r", asItIs)
	session := f.packager("packager")
	failed := f.makePackage(id).GetId()
	f.reportRun(&tilthv1.ReportRunRequest{Lease: f.mustLease(session).GetLease(), Failure: "compiling kernels0.c: no such instruction"})
	f.wantFailed(failed, "no such instruction")
	wantPage(t, f.tracker.HTTPHandler(), "/jobs/"+id, []string{"no such instruction", "/actions/package"}, nil)

	retried := f.makePackage(id).GetId()
	for range 2 {
		f.reportRun(&tilthv1.ReportRunRequest{
			Lease: f.mustLease(session).GetLease(), InfraError: tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA, InfraMessage: "the disk is full",
		})
	}
	f.wantFailed(retried, "given up after repeated loss of its builder: the disk is full")

	cancelled := f.makePackage(id).GetId()
	must[*tilthv1.CancelJobResponse](t)(f.jobs.CancelJob(t.Context(), &tilthv1.CancelJobRequest{JobId: cancelled}))
	must[*tilthv1.DeleteJobResponse](t)(f.jobs.DeleteJob(t.Context(), &tilthv1.DeleteJobRequest{JobId: cancelled}))
	done := f.makePackage(id).GetId()
	made := f.upload("a package")
	f.reportRun(&tilthv1.ReportRunRequest{Lease: f.mustLease(session).GetLease(), Result: &tilthv1.RunResult{Outputs: made}})
	f.rot(made.GetDigest())
	if err := f.download(made.GetDigest()); err == nil {
		t.Error("a damaged package is served")
	}
	if lost := f.makePackage(id).GetId(); lost == done || lost == failed || done == retried {
		t.Errorf("%s is made again as %s", done, lost)
	}
}

func TestPackageIsMadeOfAnEndedJobWithOneModel(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	refused := func(id, want string) {
		t.Helper()
		_, err := f.jobs.MakePackage(t.Context(), &tilthv1.MakePackageRequest{JobId: id})
		wantCode(t, id, err, codes.FailedPrecondition, want)
		wantPage(t, f.tracker.HTTPHandler(), "/jobs/"+id, nil, []string{"/actions/package"})
	}
	refused(f.submit("open", f.modelSpec()).GetId(), "has not ended")
	refused(f.passing("tasks", spec("conv")), "has no model: use 'tilth compile'")
	refused(f.passing("unread", f.modelSpec()), "its model was not read")
	_, err := f.jobs.MakePackage(t.Context(), &tilthv1.MakePackageRequest{JobId: "job-00000099"})
	wantCode(t, "no job", err, codes.NotFound, "does not exist")
	s := f.runSpec("")
	s.Run.PackageOf = "job-00000001"
	wantCode(t, "a job that pretends to be one", f.trySubmit("pretends", s), codes.InvalidArgument, "call MakePackage")
}

func TestPackageOfSeveralModelsOrOfALostOneIsRefused(t *testing.T) {
	f := newFarm(t, tracker.Config{Shares: policy.Shares{Default: policy.Share{Jobs: 1}}})
	several := f.tuned("several", func(s *tilthv1.JobSpec) { s.Model.Others = f.others(1) })
	_, err := f.jobs.MakePackage(t.Context(), &tilthv1.MakePackageRequest{JobId: several})
	wantCode(t, "several models", err, codes.FailedPrecondition, "has several models")
	lost := f.tuned("lost", asItIs)
	digest := f.job(lost).GetSpec().GetModel().GetFile().GetDigest()
	f.rot(digest)
	if err := f.download(digest); err == nil {
		t.Error("a damaged model is served")
	}
	_, err = f.jobs.MakePackage(t.Context(), &tilthv1.MakePackageRequest{JobId: lost})
	wantCode(t, "a lost model", err, codes.FailedPrecondition, "the model of job "+lost+" is no longer stored: upload artifact "+digest)
	f.upload("model")
	f.makePackage(lost)
	wantCode(t, "a job beyond the quota", f.trySubmit("more", f.modelSpec()), codes.ResourceExhausted, "")
}

// TestModelOutlivesTheSearchForItsPackage fills a small store while the job is tuned.
func TestModelOutlivesTheSearchForItsPackage(t *testing.T) {
	const sizeBytes, roomBytes = 10_000, 24 << 10
	f := newFarm(t, tracker.Config{Artifacts: artifact.Options{CapBytes: 4 * roomBytes}})
	id := f.submit("r", f.modelSpec()).GetId()
	f.builder()
	f.runner()
	session := f.reader("reader")
	f.reportModel(was(f.mustLease(session).GetLease(), "conv"))
	search := f.mustLease(session).GetLease()
	for n := range 8 {
		f.propose(search, uint64(n), 0, fmt.Sprint("candidate ", n))
		must[*tilthv1.ArtifactRef](t)(f.uploadBytes(t.Context(), fmt.Sprintf("object %d %s", n, strings.Repeat(".", sizeBytes))))
	}
	must[*tilthv1.FinishJobResponse](t)(f.search.FinishJob(t.Context(), &tilthv1.FinishJobRequest{Lease: search, State: tilthv1.JobState_JOB_STATE_DONE}))
	must[*tilthv1.ArtifactRef](t)(f.uploadBytes(t.Context(), strings.Repeat(".", sizeBytes)))
	f.makePackage(id)
}

// TestPackageIsMadeByWhoOwnsTheJob checks roles, forms and the audit log.
func TestPackageIsMadeByWhoOwnsTheJob(t *testing.T) {
	c := newClosed(t, false)
	f := &trackerFarm{
		TB: t, conn: c.as("alice"), jobs: tilthv1.NewJobServiceClient(c.as("alice")), agents: tilthv1.NewAgentServiceClient(c.as("anna")),
		search: tilthv1.NewSearchServiceClient(c.as("anna")),
	}
	id := f.tuned("r", asItIs)
	page, action := "/jobs/"+id, "/jobs/"+id+"/actions/package"
	reader, bob, alice, root := c.visitor(), c.visitor(), c.visitor(), c.visitor()
	for name, v := range map[string]*visitor{"read-only": reader, "bob": bob, "alice": alice, "admin": root} {
		v.signIn(name, "/")
	}
	send := func(v *visitor, token string) (code int, at string) {
		t.Helper()
		code, at, _ = v.do(http.MethodPost, action, url.Values{"form_token": {token}})
		return code, at
	}
	for name, v := range map[string]*visitor{"a reader": reader, "another client": bob} {
		if _, _, text := v.do(http.MethodGet, page, nil); strings.Contains(text, action) {
			t.Errorf("%s is offered the action", name)
		}
		if code, _ := send(v, v.formToken(action)); code != http.StatusForbidden {
			t.Errorf("%s is answered with %d", name, code)
		}
	}
	if code, _ := send(alice, bob.formToken(action)); code != http.StatusForbidden {
		t.Errorf("a form of another session is answered with %d", code)
	}
	if code, _, _ := alice.do(http.MethodPost, "/api/v1"+page+":package", url.Values{}); code == http.StatusOK {
		t.Error("a browser's session makes a package without a form")
	}
	code, at := send(alice, alice.formToken(action))
	if code != http.StatusOK || !strings.HasPrefix(at, "/jobs/job-") || at == page {
		t.Fatalf("the form leads to %s: %d", at, code)
	}
	if _, again := send(root, root.formToken(action)); again != at {
		t.Errorf("an admin's form leads to %s, not to %s", again, at)
	}
	if code, text := c.ask("alice", http.MethodPost, strings.TrimPrefix(page, "/")+":package", "{}"); code != http.StatusOK || !strings.Contains(text, strings.TrimPrefix(at, "/jobs/")) {
		t.Errorf("the JSON call is answered with %d: %s", code, text)
	}
	c.wantAudit("JobService.MakePackage read-only PermissionDenied", "JobService.MakePackage bob PermissionDenied", "JobService.MakePackage alice OK", "JobService.MakePackage admin OK")
}

// TestBuilderOfAPrivateJobSeesItsRecords checks that best records include private ones for the job's builder.
func TestBuilderOfAPrivateJobSeesItsRecords(t *testing.T) {
	f := newSharedFarm(t)
	job, _, _, _, work := f.begun()
	f.report(work.GetLease(), ok(work.GetMeasure().GetCandidates()[0], 0.001))
	conv := spec("conv")
	request := &tilthv1.BestRecordsRequest{
		Target: conv.GetTarget().GetFingerprint(), WorkloadDigests: []string{conv.GetTasks()[0].GetWorkloadDigest()}, Numerics: "fast", PageSize: 1,
	}
	for who, want := range map[string]int{"board": 1, "alice": 1, "root": 0} {
		request.JobId = job
		found := must[*tilthv1.BestRecordsResponse](t)(f.records.BestRecords(f.as(who), request)).GetRecords()
		if len(found) != want {
			t.Errorf("%s gets %d records for the job, want %d", who, len(found), want)
		}
	}
	_, err := f.records.BestRecords(f.as("bob"), request)
	wantCode(t, "bob", err, codes.NotFound, job)
}
