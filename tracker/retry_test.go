package tracker_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const (
	tunerKind   = tilthv1.AgentKind_AGENT_KIND_TUNER
	builderKind = tilthv1.AgentKind_AGENT_KIND_BUILDER
)

// joinAs starts a session of a kind.
func (f *timed) joinAs(name string, kind tilthv1.AgentKind) string {
	f.t.Helper()
	return must[*tilthv1.JoinResponse](f.t)(f.Join(f.t.Context(), &tilthv1.JoinRequest{Spec: agentSpec(name, kind)})).GetSession()
}

// submitOf submits an owner's job with a separate tuner, which proposes batches of one candidate each for building.
func (f *timed) submitOf(owner, name string, priority uint32, batches int) string {
	f.t.Helper()
	s := spec("conv")
	s.Name, s.Owner, s.Priority = name, owner, priority
	job := must[*tilthv1.SubmitJobResponse](f.t)(f.SubmitJob(f.t.Context(), &tilthv1.SubmitJobRequest{RequestId: name, Spec: s})).GetJob()
	lease := f.lease(f.joinAs("tuner of "+name, tunerKind), 0)
	for n := range batches {
		must[*tilthv1.ProposeBatchResponse](f.t)(f.ProposeBatch(f.t.Context(), &tilthv1.ProposeBatchRequest{
			Lease: lease, Proposal: uint64(n), Candidates: candidates(fmt.Sprint(name, n)),
		}))
	}
	return job.GetId()
}

// build leases a batch, or returns nil.
func (f *timed) build(session string) *tilthv1.LeaseWorkResponse {
	f.t.Helper()
	r := must[*tilthv1.LeaseWorkResponse](f.t)(f.LeaseWork(f.t.Context(), &tilthv1.LeaseWorkRequest{Session: session}))
	if r.GetLease() == nil {
		return nil
	}
	return r
}

// broken reports a failure of the builder.
func (f *timed) broken(w *tilthv1.LeaseWorkResponse) {
	f.t.Helper()
	must[*tilthv1.ReportBuildResponse](f.t)(f.ReportBuild(f.t.Context(), &tilthv1.ReportBuildRequest{
		Lease: w.GetLease(), InfraError: tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA, InfraMessage: "no compiler",
	}))
}

// refused reports that no candidate compiles, which ends the batch.
func (f *timed) refused(w *tilthv1.LeaseWorkResponse) {
	f.t.Helper()
	r := &tilthv1.ReportBuildRequest{Lease: w.GetLease()}
	for _, c := range w.GetBuild().GetCandidates() {
		r.Outcomes = append(r.Outcomes, &tilthv1.BuildOutcome{
			Candidate: c.GetDigest(), Error: tilthv1.ErrorClass_ERROR_CLASS_COMPILE_ERROR, Message: "no",
		})
	}
	must[*tilthv1.ReportBuildResponse](f.t)(f.ReportBuild(f.t.Context(), r))
}

func (f *timed) jobOf(id string) *tilthv1.Job {
	f.t.Helper()
	return must[*tilthv1.GetJobResponse](f.t)(f.GetJob(f.t.Context(), &tilthv1.GetJobRequest{JobId: id})).GetJob()
}

func (f *timed) agent(name string) *tilthv1.Agent {
	f.t.Helper()
	return must[*tilthv1.GetAgentResponse](f.t)(f.GetAgent(f.t.Context(), &tilthv1.GetAgentRequest{Name: name})).GetAgent()
}

func TestRetryWaitsAndGoesElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimed(t)
		defer func() { f.stop() }()
		f.submitOf("ana", "job", 0, 1)
		one, other := f.joinAs("one", builderKind), f.joinAs("other", builderKind)
		f.broken(f.build(one))
		if w := f.build(other); w != nil {
			t.Error("it was tried again at once")
		}
		pass(1100 * time.Millisecond)
		if w := f.build(one); w != nil {
			t.Error("it was tried again where it failed")
		}
		w := f.build(other)
		if w == nil {
			t.Fatal("it was not tried again")
		}
		f.broken(w)
		pass(950 * time.Millisecond)
		if f.build(one) != nil || f.build(other) != nil {
			t.Error("the second wait is no longer than the first")
		}
		pass(1100 * time.Millisecond)
		if f.build(one) == nil {
			t.Error("it is not tried where it failed though it failed everywhere")
		}
	})
}

func TestRetryDoesNotWaitForAnotherAgentForEver(t *testing.T) {
	for name, leave := range map[string]bool{"the other is busy with something else": false, "the other is gone": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newTimed(t)
				defer func() { f.stop() }()
				f.submitOf("ana", "job", 0, 1)
				one, other := f.joinAs("one", builderKind), f.joinAs("other", builderKind)
				f.broken(f.build(one))
				wait := 33 * time.Second
				if leave {
					must[*tilthv1.LeaveResponse](t)(f.Leave(t.Context(), &tilthv1.LeaveRequest{Session: other}))
					wait = 1100 * time.Millisecond
				}
				for range wait / time.Second {
					f.beat(one, time.Second)
					if !leave {
						f.beat(other, time.Second)
					}
				}
				if f.build(one) == nil {
					t.Error("it waits still")
				}
			})
		})
	}
}

// TestRetryIsGivenToAnAgentThatWaits checks that a waiting agent gets a retry when it is due.
func TestRetryIsGivenToAnAgentThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimed(t)
		defer func() { f.stop() }()
		f.submitOf("ana", "job", 0, 1)
		one, other := f.joinAs("one", builderKind), f.joinAs("other", builderKind)
		f.broken(f.build(one))
		if f.lease(other, 10) == nil {
			t.Error("it was given nothing")
		}
	})
}

// TestBrokenAgentCostsItsOwnLeases is a regression test: a broken builder among two failed fastest, and so turned
// most work into dead letters.
func TestBrokenAgentCostsItsOwnLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimed(t)
		defer func() { f.stop() }()
		job := f.submitOf("ana", "job", 0, 40)
		bad, good := f.joinAs("bad", builderKind), f.joinAs("good", builderKind)
		failed, coolsDown := 0, false
		for range 200 {
			for w := f.build(bad); w != nil; w = f.build(bad) {
				f.broken(w)
				failed++
			}
			coolsDown = coolsDown || f.agent("bad").GetRestingUntil().AsTime().After(time.Now())
			if w := f.build(good); w != nil {
				f.refused(w)
			}
			pass(time.Second)
		}
		j := f.jobOf(job)
		if n := j.GetProgress()[0].GetTrials(); n != 40 || len(j.GetDeadLetters()) != 0 {
			t.Errorf("%d trials of 40, dead letters %v", n, j.GetDeadLetters())
		}
		if !coolsDown || failed > 8 {
			t.Errorf("the bad one was given a rest: %v; it failed %d leases", coolsDown, failed)
		}
		if a := f.agent("bad"); a.GetRestReason() == "" {
			t.Errorf("nothing tells why: %v", a)
		}
	})
}

// TestFailuresOfABrokenAgentDoNotCountAgainstItsBatches checks that batches survive more failures on a broken agent
// than their limit.
func TestFailuresOfABrokenAgentDoNotCountAgainstItsBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimed(t)
		defer func() { f.stop() }()
		job := f.submitOf("ana", "job", 0, 3)
		bad := f.joinAs("bad", builderKind)
		const attempts = 4 // the tracker's default limit
		failures := map[string]int{}
		for limit := 0; limit <= attempts; {
			for w := f.build(bad); w != nil; w = f.build(bad) { // several failures blame the agent
				f.broken(w)
				failures[w.GetLease().GetSubject()]++
				limit = max(limit, failures[w.GetLease().GetSubject()])
			}
			if dead := f.jobOf(job).GetDeadLetters(); len(dead) > 0 {
				t.Fatalf("after failures %v there are dead letters: %v", failures, dead)
			}
			f.beat(bad, time.Second)
		}
	})
}

// TestFailingJobDoesNotBlockItsBuilder is a regression test: a job that always fails, such as one with an invalid
// target, kept other jobs from the only builder.
func TestFailingJobDoesNotBlockItsBuilder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimed(t)
		defer func() { f.stop() }()
		bad := f.submitOf("ana", "bad", 0, 30)
		only := f.joinAs("only", builderKind)
		for range 3 {
			f.broken(f.build(only))
		}
		if f.build(only) != nil {
			t.Error("more of it was granted though it all failed")
		}
		good := f.submitOf("eva", "good", 0, 10)
		for range 1000 {
			if w := f.build(only); w != nil && w.GetBuild().GetJobId() == bad {
				f.broken(w)
			} else if w != nil {
				f.refused(w)
			}
			f.beat(only, time.Second)
			if n := f.jobOf(good).GetProgress()[0].GetTrials(); n == 10 {
				break
			}
		}
		if n := f.jobOf(good).GetProgress()[0].GetTrials(); n != 10 {
			t.Errorf("%d trials of the other job", n)
		}
		if a := f.agent("only"); strings.Contains(a.GetRestReason(), "from "+good) {
			t.Errorf("it rests %s", a.GetRestReason())
		}
	})
}

// TestAgentsDeathIsOneFailure is a regression test: the death of a builder counted once per lease.
func TestAgentsDeathIsOneFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimed(t)
		defer func() { f.stop() }()
		f.submitOf("ana", "job", 0, 9)
		session := f.joinAs("builder", builderKind)
		for range 2 {
			for range 4 {
				f.build(session)
			}
			session = f.joinAs("builder", builderKind)
			if a := f.agent("builder"); a.GetRestReason() != "" {
				t.Fatalf("it is given a rest: %s", a.GetRestReason())
			}
		}
		f.build(session)
		f.joinAs("builder", builderKind)
		if a := f.agent("builder"); a.GetRestReason() == "" {
			t.Error("three deaths are no reason for a rest")
		}
	})
}

func TestSuccessEndsCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimed(t)
		defer func() { f.stop() }()
		f.submitOf("ana", "job", 0, 6)
		only := f.joinAs("only", builderKind)
		for range 3 {
			f.broken(f.build(only))
		}
		if f.build(only) != nil {
			t.Error("it was given work though all its leases failed")
		}
		f.beat(only, 11*time.Second)
		f.refused(f.build(only))
		if a := f.agent("only"); a.GetRestingUntil() != nil || a.GetRestReason() != "" {
			t.Errorf("it rests: %v", a)
		}
		f.broken(f.build(only))
		if f.build(only) == nil {
			t.Error("one failure is held against it")
		}
	})
}

// TestAttemptsAreBoundedWithBrokenDevices checks that a farm with only broken devices gives up eventually.
func TestAttemptsAreBoundedWithBrokenDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimed(t)
		defer func() { f.stop() }()
		job := f.submitOf("ana", "job", 0, 3)
		only := f.joinAs("only", builderKind)
		attempts := 0
		for began := time.Now(); time.Since(began) < 24*time.Hour && f.jobOf(job).GetEndedAt() == nil; {
			if w := f.build(only); w != nil {
				f.broken(w)
				attempts++
			}
			f.beat(only, 10*time.Second)
		}
		f.beat(only, time.Hour) // no attempt follows
		if f.jobOf(job).GetState() != tilthv1.JobState_JOB_STATE_FAILED || attempts > 16 || f.build(only) != nil {
			t.Errorf("%d attempts, then the job is %v", attempts, f.jobOf(job))
		}
		for _, d := range f.jobOf(job).GetDeadLetters() {
			if d.GetMessage() != "no compiler" || len(d.GetAgents()) != 1 || d.GetAgents()[0] != "only" {
				t.Errorf("a dead letter says %v", d)
			}
		}
	})
}

// TestWorkThatFailsDuringAPauseIsQueuedOnce is a regression test: failed work was queued when its job resumed and
// again after its delay. The second lease outlived the batch.
func TestWorkThatFailsDuringAPauseIsQueuedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimed(t)
		defer func() { f.stop() }()
		id := f.submitOf("ana", "job", 0, 1)
		one := f.joinAs("one", builderKind)
		w := f.build(one)
		must[*tilthv1.PauseJobResponse](t)(f.PauseJob(t.Context(), &tilthv1.PauseJobRequest{JobId: id}))
		f.broken(w)
		must[*tilthv1.ResumeJobResponse](t)(f.ResumeJob(t.Context(), &tilthv1.ResumeJobRequest{JobId: id}))
		pass(2 * time.Second)
		first := f.build(one)
		if first == nil {
			t.Fatal("it is not tried again")
		}
		if f.build(one) != nil {
			t.Error("it is leased twice")
		}
	})
}
