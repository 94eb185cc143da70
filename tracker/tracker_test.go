package tracker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

func TestJobGoesThroughTheFarm(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	job := f.submit("r1", spec("conv", "pool"))
	tuner := f.mustLease(f.tuner())
	if !proto.Equal(tuner.GetSearch().GetJob().GetSpec(), job.GetSpec()) {
		t.Errorf("the tuner got %v", tuner.GetSearch().GetJob())
	}
	if p := f.propose(tuner.GetLease(), 0, 1, "a", "b", "c"); p.GetFirstTrial() != 0 {
		t.Errorf("first trial is %d", p.GetFirstTrial())
	}
	if p := f.propose(tuner.GetLease(), 1, 1, "d"); p.GetFirstTrial() != 3 {
		t.Errorf("first trial of the second batch is %d", p.GetFirstTrial())
	}
	builder, runner := f.builder(), f.runner()
	f.reportBuild(f.buildReport(f.mustLease(builder), "b"))
	f.reportBuild(f.buildReport(f.mustLease(builder), "d"))
	work := f.mustLease(runner)
	got := work.GetMeasure()
	if len(got.GetCandidates()) != 2 || got.GetCandidates()[1].GetTrial() != 2 || len(got.GetArtifacts()) != 1 || got.GetTask().GetName() != "pool" {
		t.Fatalf("the runner got %v", got)
	}
	f.report(work.GetLease(), ok(got.GetCandidates()[0], 0.002))
	f.report(work.GetLease(), ok(got.GetCandidates()[1], 0.001))
	must[*tilthv1.FinishJobResponse](t)(f.search.FinishJob(t.Context(), &tilthv1.FinishJobRequest{
		Lease: tuner.GetLease(), State: tilthv1.JobState_JOB_STATE_DONE, Reason: "converged",
	}))
	want := "queued, running, proposed 0×3, proposed 1×1, trial 1.1 b 0, trial 1.3 d 0, trial 1.0 a 0.002, trial 1.2 c 0.001, done"
	events := f.events(job.GetId(), 0, 9)
	if got := describe(events); got != want {
		t.Errorf("events\n%s, want\n%s", got, want)
	}
	for i, e := range events {
		if e.GetSequence() != uint64(i+1) {
			t.Errorf("event %d has sequence %d", i, e.GetSequence())
		}
	}
	end := f.job(job.GetId())
	p := end.GetProgress()[1]
	if end.GetState() != tilthv1.JobState_JOB_STATE_DONE || p.GetTrials() != 4 || p.GetProposed() != 4 ||
		p.GetBestSeconds() != 0.001 || string(p.GetBestTrace()) != "c" || p.GetErrors()["ERROR_CLASS_COMPILE_ERROR"] != 2 {
		t.Errorf("the job ended as %v", end)
	}
	best := must[*tilthv1.BestRecordsResponse](t)(f.records.BestRecords(t.Context(), &tilthv1.BestRecordsRequest{Target: "cpu-1"})).GetRecords()
	if len(best) != 1 || string(best[0].GetMeasurement().GetCandidate().GetTrace()) != "c" || best[0].GetJobId() != job.GetId() ||
		best[0].GetMeasurement().GetDevice() != "runner" || best[0].GetMeasurement().GetBuildSeconds() != 0.25 {
		t.Errorf("best records are %v", best)
	}
}

// TestCallsRepeatedAfterTheyTookEffectChangeNothing repeats every call that an agent or client repeats after a lost
// response.
func TestCallsRepeatedAfterTheyTookEffectChangeNothing(t *testing.T) {
	for _, restart := range []bool{false, true} {
		name := map[bool]string{false: "at once", true: "after a restart"}[restart]
		t.Run(name, func(t *testing.T) {
			f := newFarm(t, tracker.Config{})
			twice := func(call func()) {
				call()
				if restart {
					f.restart()
				}
				call()
			}
			var job *tilthv1.Job
			twice(func() {
				again := f.submit("r1", spec("conv"))
				if job != nil && again.GetId() != job.GetId() {
					t.Errorf("job %s became %s", job.GetId(), again.GetId())
				}
				job = again
			})
			tuner := f.mustLease(f.tuner())
			propose := func(names ...string) func() {
				return func() {
					p := f.propose(tuner.GetLease(), 0, 0, names...)
					if !strings.HasPrefix(p.GetBatchId(), job.GetId()+".00000000") || p.GetFirstTrial() != 0 {
						t.Errorf("proposed %v", p)
					}
				}
			}
			twice(propose("a", "b"))
			build := f.buildReport(f.mustLease(f.builder()))
			twice(func() { f.reportBuild(build) })
			run := f.mustLease(f.runner())
			cs := run.GetMeasure().GetCandidates()
			twice(func() { f.report(run.GetLease(), ok(cs[0], 1)) })
			twice(func() { f.report(run.GetLease(), ok(cs[0], 1), ok(cs[1], 2)) })
			twice(propose("a", "b"))
			finish := &tilthv1.FinishJobRequest{Lease: tuner.GetLease(), State: tilthv1.JobState_JOB_STATE_DONE}
			twice(func() { must[*tilthv1.FinishJobResponse](t)(f.search.FinishJob(t.Context(), finish)) })
			twice(func() {
				c := must[*tilthv1.CancelJobResponse](t)(f.jobs.CancelJob(t.Context(), &tilthv1.CancelJobRequest{JobId: job.GetId()}))
				if c.GetJob().GetState() != tilthv1.JobState_JOB_STATE_DONE {
					t.Errorf("cancelling an ended job made it %v", c.GetJob().GetState())
				}
			})
			f.report(run.GetLease(), ok(cs[1], 2))
			want := "queued, running, proposed 0×2, trial 0.0 a 1, trial 0.1 b 2, done"
			if got := describe(f.events(job.GetId(), 1, 6)); got != want {
				t.Errorf("events %s, want %s", got, want)
			}
		})
	}
}

func TestReportUnderAStaleLeaseIsRefused(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	job := f.submit("r1", spec("conv"))
	tuner := f.mustLease(f.tuner())
	f.propose(tuner.GetLease(), 0, 0, "a")
	old := f.buildReport(f.mustLease(f.builder()))
	now := f.buildReport(f.mustLease(f.builder())) // the builder was killed and has joined again
	_, err := f.build.ReportBuild(t.Context(), old)
	wantStale(t, err)
	f.reportBuild(now)
	_, err = f.build.ReportBuild(t.Context(), old)
	wantStale(t, err)
	first := f.mustLease(f.runner())
	second := f.mustLease(f.runner())
	c := second.GetMeasure().GetCandidates()[0]
	forged := proto.CloneOf(second.GetLease())
	forged.Attempt++
	for name, lease := range map[string]*tilthv1.LeaseToken{
		"an older attempt": first.GetLease(), "a later attempt": forged, "another kind": now.GetLease(), "a builder's": old.GetLease(),
		"no batch": {Session: first.GetLease().GetSession(), Subject: "job-00000009.00000000", Attempt: 1}, "none": nil,
	} {
		_, err := f.measure.ReportMeasurements(t.Context(), &tilthv1.ReportMeasurementsRequest{
			Lease: lease, Measurements: []*tilthv1.Measurement{ok(c, 1)},
		})
		if name == "another kind" {
			// The lease of the accepted build is known; the report changes nothing.
			continue
		}
		t.Run(name, func(t *testing.T) { wantStale(t, err) })
	}
	if got := f.job(job.GetId()).GetProgress()[0].GetTrials(); got != 0 {
		t.Errorf("%d trials were recorded under stale leases", got)
	}
	f.report(second.GetLease(), ok(c, 1))
	f.tuner()
	_, err = f.search.ProposeBatch(t.Context(), &tilthv1.ProposeBatchRequest{Lease: tuner.GetLease(), Proposal: 1, Candidates: candidates("b")})
	wantStale(t, err)
	_, err = f.search.FinishJob(t.Context(), &tilthv1.FinishJobRequest{Lease: tuner.GetLease(), State: tilthv1.JobState_JOB_STATE_DONE})
	wantStale(t, err)
	if got := describe(f.events(job.GetId(), 1, 5)); got != "queued, running, proposed 0×1, trial 0.0 a 1, queued" {
		t.Errorf("events %s", got)
	}
}

func TestRunnerThatDiesMidwayLeavesOnlyTheRest(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.submit("r1", spec("conv"))
	f.propose(f.mustLease(f.tuner()).GetLease(), 0, 0, "a", "b", "c")
	f.reportBuild(f.buildReport(f.mustLease(f.builder())))
	first := f.mustLease(f.runner())
	f.report(first.GetLease(), crashed(first.GetMeasure().GetCandidates()[1]))
	rest := f.mustLease(f.runner()).GetMeasure().GetCandidates()
	if len(rest) != 2 || rest[0].GetDigest() != records.Digest([]byte("a")) || rest[1].GetDigest() != records.Digest([]byte("c")) {
		t.Errorf("the next runner got %v", rest)
	}
}

func TestBatchThatTheFarmFailsRepeatedlyBecomesADeadLetter(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	job := f.submit("r1", spec("conv"))
	f.propose(f.mustLease(f.tuner()).GetLease(), 0, 0, "a", "b")
	builder := f.builder()
	// Returned leases do not count.
	for range 5 {
		must[*tilthv1.ReturnLeaseResponse](t)(f.agents.ReturnLease(t.Context(), &tilthv1.ReturnLeaseRequest{Lease: f.mustLease(builder).GetLease()}))
	}
	var last *tilthv1.ReportBuildRequest
	for i := range 4 {
		work := f.lease(builder)
		if work.GetLease() == nil {
			t.Fatalf("no work at attempt %d", i)
		}
		last = &tilthv1.ReportBuildRequest{Lease: work.GetLease(), InfraError: tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA, InfraMessage: "disk full"}
		f.reportBuild(last)
		f.reportBuild(last)
	}
	if w := f.lease(builder); w.GetLease() != nil {
		t.Errorf("a buried batch was leased again: %v", w)
	}
	f.reportBuild(last)
	letters := f.job(job.GetId()).GetDeadLetters()
	if len(letters) != 1 || letters[0].GetAttempts() != 4 || letters[0].GetMessage() != "disk full" {
		t.Errorf("dead letters are %v", letters)
	}
	if got := describe(f.events(job.GetId(), 1, 4)); got != "queued, running, proposed 0×2, dead ERROR_CLASS_BUILD_INFRA" {
		t.Errorf("events %s", got)
	}
}

func TestJobWhoseTunersKeepDyingFails(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	job := f.submit("r1", spec("conv"))
	for range 3 {
		f.mustLease(f.tuner())
	}
	f.propose(f.mustLease(f.tuner()).GetLease(), 0, 0, "a") // progress resets the count
	for range 3 {
		f.mustLease(f.tuner())
	}
	if s := f.job(job.GetId()).GetState(); s != tilthv1.JobState_JOB_STATE_RUNNING {
		t.Errorf("the job is %v", s)
	}
	f.tuner()
	if j := f.job(job.GetId()); j.GetState() != tilthv1.JobState_JOB_STATE_FAILED || !strings.Contains(j.GetReason(), "tuner") {
		t.Errorf("the job is %v: %s", j.GetState(), j.GetReason())
	}
	if w := f.lease(f.builder()); w.GetLease() != nil {
		t.Error("a batch of the failed job was leased")
	}
}

func TestArtifactsThatAreLostAreBuiltAgain(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.submit("r1", spec("conv"))
	f.propose(f.mustLease(f.tuner()).GetLease(), 0, 0, "a")
	report := f.buildReport(f.mustLease(f.builder()))
	report.Artifacts[0] = &tilthv1.ArtifactRef{Role: "candidates", Digest: records.Digest([]byte("never uploaded")), SizeBytes: 3}
	_, err := f.build.ReportBuild(t.Context(), report)
	wantStatus(t, err, codes.FailedPrecondition, "MISSING_ARTIFACT", "upload it")
	report.Artifacts[0] = f.upload("x")
	f.reportBuild(report)
	f.stop()
	removeAll(t, filepath.Join(f.dir, "artifacts"))
	f.start()
	runner := f.runner()
	if w := f.lease(runner); w.GetLease() != nil {
		t.Fatal("a batch without artifacts was leased to a runner")
	}
	f.reportBuild(f.buildReport(f.mustLease(f.builder())))
	f.mustLease(runner)
}

func TestCancelDropsWhatIsUnderWay(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	job := f.submit("r1", spec("conv"))
	session := f.tuner()
	tuner := f.mustLease(session)
	f.propose(tuner.GetLease(), 0, 0, "a")
	f.propose(tuner.GetLease(), 1, 0, "b")
	builder := f.builder()
	build := f.mustLease(builder)
	must[*tilthv1.CancelJobResponse](t)(f.jobs.CancelJob(t.Context(), &tilthv1.CancelJobRequest{JobId: job.GetId(), Reason: "enough"}))
	for session, lease := range map[string]*tilthv1.LeaseToken{session: tuner.GetLease(), builder: build.GetLease()} {
		beat := must[*tilthv1.HeartbeatResponse](t)(f.agents.Heartbeat(t.Context(), &tilthv1.HeartbeatRequest{
			Session: session, Leases: []*tilthv1.LeaseToken{lease},
		}))
		if len(beat.GetDropped()) != 1 {
			t.Errorf("dropped %v", beat.GetDropped())
		}
	}
	_, err := f.build.ReportBuild(t.Context(), f.buildReport(build))
	wantStale(t, err)
	if w := f.lease(builder); w.GetLease() != nil {
		t.Error("a batch of the cancelled job was leased")
	}
	got := describe(f.events(job.GetId(), 1, 5))
	if got != "queued, running, proposed 0×1, proposed 1×1, cancelled" {
		t.Errorf("events %s", got)
	}
	f.restart()
	if j := f.job(job.GetId()); j.GetState() != tilthv1.JobState_JOB_STATE_CANCELLED || j.GetReason() != "enough" {
		t.Errorf("the job is %v", j)
	}
}

func TestJobsTakeTurns(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	tuner := f.tuner()
	var jobs [2]string
	for i, id := range []string{"r1", "r2"} {
		jobs[i] = f.submit(id, spec("conv")).GetId()
		lease := f.mustLease(tuner).GetLease()
		for n := range uint64(3) {
			f.propose(lease, n, 0, string(rune('a'+3*i+int(n))))
		}
	}
	builder := f.builder()
	var order []string
	for range 6 {
		order = append(order, f.mustLease(builder).GetBuild().GetBatchId())
	}
	var want []string
	for n := range 3 {
		for _, job := range jobs {
			want = append(want, fmt.Sprintf("%s.%08d", job, n))
		}
	}
	if got := strings.Join(order, " "); got != strings.Join(want, " ") {
		t.Errorf("order %s, want %s", got, want)
	}
}

func TestWorkGoesOnlyToAgentsThatOfferWhatItNeeds(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	other := spec("conv")
	other.Target.Toolchain, other.Target.DeviceClass, other.Tuner = "gcc-12", "arm", "grid"
	f.submit("r1", other)
	if w := f.lease(f.tuner()); w.GetLease() != nil {
		t.Errorf("a tuner without grid got %v", w)
	}
	s := agentSpec("grid-tuner", tilthv1.AgentKind_AGENT_KIND_TUNER)
	s.Tuners = []string{"grid"}
	session := must[*tilthv1.JoinResponse](t)(f.agents.Join(t.Context(), &tilthv1.JoinRequest{Spec: s})).GetSession()
	f.propose(f.mustLease(session).GetLease(), 0, 0, "a")
	if w := f.lease(f.builder()); w.GetLease() != nil {
		t.Errorf("a builder without gcc got %v", w)
	}
}

func TestLongPollIsAnsweredWhenWorkComes(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	session := f.tuner()
	answers := make(chan *tilthv1.LeaseWorkResponse, 1)
	go func() {
		w, _ := f.agents.LeaseWork(context.Background(), &tilthv1.LeaseWorkRequest{Session: session, Wait: seconds(50)})
		answers <- w
	}()
	job := f.submit("r1", spec("conv"))
	if w := <-answers; w.GetSearch().GetJob().GetId() != job.GetId() {
		t.Errorf("got %v", w)
	}
}

func TestVoidSessionIsTold(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	old := f.tuner()
	waiting := make(chan error, 1)
	go func() {
		_, err := f.agents.LeaseWork(context.Background(), &tilthv1.LeaseWorkRequest{Session: old, Wait: seconds(50)})
		waiting <- err
	}()
	f.tuner() // invalidates the old session, whether or not its call is waiting
	wantStatus(t, <-waiting, codes.NotFound, "VOID_SESSION", "join again")
	_, err := f.agents.Heartbeat(t.Context(), &tilthv1.HeartbeatRequest{Session: old})
	wantStatus(t, err, codes.NotFound, "VOID_SESSION", "join again")
}

func TestLeavingRequeuesAtOnce(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.submit("r1", spec("conv"))
	session := f.tuner()
	lease := f.mustLease(session).GetLease()
	must[*tilthv1.LeaveResponse](t)(f.agents.Leave(t.Context(), &tilthv1.LeaveRequest{Session: session}))
	must[*tilthv1.LeaveResponse](t)(f.agents.Leave(t.Context(), &tilthv1.LeaveRequest{Session: session}))
	a := must[*tilthv1.GetAgentResponse](t)(f.agents.GetAgent(t.Context(), &tilthv1.GetAgentRequest{Name: "tuner"})).GetAgent()
	if a.GetState() != tilthv1.AgentState_AGENT_STATE_GONE || a.GetFailed() != 0 {
		t.Errorf("the agent is %v, and %d leases failed through its fault", a.GetState(), a.GetFailed())
	}
	f.restart()
	if again := f.mustLease(f.tuner()).GetLease(); again.GetAttempt() != lease.GetAttempt()+1 {
		t.Errorf("lease %v became %v", lease, again)
	}
}

func TestLeasesOutliveARestartOfTheTracker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(t, tracker.Config{})
		job := f.submit("r1", spec("conv"))
		session := f.tuner()
		tuner := f.mustLease(session).GetLease()
		f.restart()
		pass(100 * time.Second) // longer than the lease timeout, shorter than the grace period
		beat := must[*tilthv1.HeartbeatResponse](t)(f.agents.Heartbeat(t.Context(), &tilthv1.HeartbeatRequest{Session: session, Leases: []*tilthv1.LeaseToken{tuner}}))
		if len(beat.GetDropped()) != 0 {
			t.Fatalf("dropped %v", beat.GetDropped())
		}
		f.propose(tuner, 0, 0, "a", "b")
		build := f.buildReport(f.mustLease(f.builder()))
		f.restart()
		pass(100 * time.Second) // longer than the lease timeout, shorter than the grace period
		f.reportBuild(build)
		run := f.mustLease(f.runner())
		f.report(run.GetLease(), ok(run.GetMeasure().GetCandidates()[0], 1))
		f.restart()
		pass(100 * time.Second) // longer than the lease timeout, shorter than the grace period
		f.report(run.GetLease(), ok(run.GetMeasure().GetCandidates()[1], 2))
		f.propose(tuner, 1, 0, "c")
		got := describe(f.events(job.GetId(), 1, 6))
		if got != "queued, running, proposed 0×2, trial 0.0 a 1, trial 0.1 b 2, proposed 1×1" {
			t.Errorf("events %s", got)
		}
	})
}

func TestWatchReplaysThenFollowsWithoutGap(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	job := f.submit("r1", spec("conv"))
	stream := must[grpc.ServerStreamingClient[tilthv1.WatchJobResponse]](t)(f.jobs.WatchJob(t.Context(), &tilthv1.WatchJobRequest{JobId: job.GetId()}))
	next := func() string {
		return describe([]*tilthv1.JobEvent{must[*tilthv1.WatchJobResponse](t)(stream.Recv()).GetEvent()})
	}
	if got := next(); got != "queued" {
		t.Errorf("first event %s", got)
	}
	lease := f.mustLease(f.tuner()).GetLease()
	f.propose(lease, 0, 0, "a")
	must[*tilthv1.FinishJobResponse](t)(f.search.FinishJob(t.Context(), &tilthv1.FinishJobRequest{Lease: lease, State: tilthv1.JobState_JOB_STATE_FAILED, Reason: "x"}))
	for _, want := range []string{"running", "proposed 0×1", "failed"} {
		if got := next(); got != want {
			t.Errorf("event %s, want %s", got, want)
		}
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last event: %v", err)
	}
	late := must[grpc.ServerStreamingClient[tilthv1.WatchJobResponse]](t)(f.jobs.WatchJob(t.Context(), &tilthv1.WatchJobRequest{JobId: job.GetId(), FromSequence: 5}))
	if _, err := late.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("beyond the last event: %v", err)
	}
	none := must[grpc.ServerStreamingClient[tilthv1.WatchJobResponse]](t)(f.jobs.WatchJob(t.Context(), &tilthv1.WatchJobRequest{JobId: "job-00000077"}))
	_, err := none.Recv()
	wantStatus(t, err, codes.NotFound, "", `job "job-00000077" does not exist`)
}
