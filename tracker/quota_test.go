package tracker_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// specOf returns the specification of an owner's job with a budget of trials; 0 means a budget of time only.
func specOf(owner string, trials uint32) *tilthv1.JobSpec {
	s := spec("conv")
	s.Owner, s.Budget = owner, &tilthv1.Budget{Trials: trials, Time: seconds(3600)}
	return s
}

func (f *trackerFarm) trySubmit(request string, s *tilthv1.JobSpec) error {
	_, err := f.jobs.SubmitJob(f.Context(), &tilthv1.SubmitJobRequest{RequestId: request, Spec: s})
	return err
}

func (f *trackerFarm) owners() []*tilthv1.Owner {
	f.Helper()
	return must[*tilthv1.ListOwnersResponse](f)(f.jobs.ListOwners(f.Context(), &tilthv1.ListOwnersRequest{})).GetOwners()
}

func TestOwnerHasNoMoreJobsThanItMay(t *testing.T) {
	f := newFarm(t, tracker.Config{Shares: policy.Shares{
		Default: policy.Share{Jobs: 2}, Owners: map[string]policy.Share{"ci": {Jobs: 3}},
	}})
	first := f.submit("1", specOf("ana", 10))
	f.submit("2", specOf("ana", 10))
	for range 2 { // the second after a restart
		wantStatus(t, f.trySubmit("3", specOf("ana", 10)), codes.ResourceExhausted, wire.ReasonQuota,
			`owner "ana" has 2 open jobs, at most 2 are allowed: wait for one to end, or cancel one`)
		if again := f.submit("1", specOf("ana", 10)); again.GetId() != first.GetId() {
			t.Errorf("a repeated call made job %s", again.GetId())
		}
		f.restart()
	}
	for n := range 3 {
		f.submit(fmt.Sprint("ci ", n), specOf("ci", 10))
	}
	wantStatus(t, f.trySubmit("ci 3", specOf("ci", 10)), codes.ResourceExhausted, wire.ReasonQuota, "at most 3")
	must[*tilthv1.CancelJobResponse](t)(f.jobs.CancelJob(t.Context(), &tilthv1.CancelJobRequest{JobId: first.GetId()}))
	f.submit("3", specOf("ana", 10))
}

func TestOwnersJobsComeToNoMoreTrialsThanTheyMay(t *testing.T) {
	f := newFarm(t, tracker.Config{Shares: policy.Shares{Default: policy.Share{Trials: 12}}})
	f.submit("1", specOf("ana", 10))
	wantStatus(t, f.trySubmit("2", specOf("ana", 3)), codes.ResourceExhausted, wire.ReasonQuota,
		`owner "ana" has jobs of 10 trials, at most 12 are allowed in all: ask for at most 2, or wait for a job to end`)
	// A budget of time only counts the proposed trials.
	timed := specOf("ana", 0)
	timed.Tuner = "ga"
	f.submit("3", timed)
	tuner := agentSpec("ga", tilthv1.AgentKind_AGENT_KIND_TUNER)
	tuner.Tuners = []string{"ga"}
	session := must[*tilthv1.JoinResponse](t)(f.agents.Join(t.Context(), &tilthv1.JoinRequest{Spec: tuner})).GetSession()
	lease := f.mustLease(session).GetLease()
	for range 2 {
		f.propose(lease, 0, 0, "a", "b")
		_, err := f.search.ProposeBatch(t.Context(), &tilthv1.ProposeBatchRequest{Lease: lease, Proposal: 1, Candidates: candidates("c")})
		wantStatus(t, err, codes.ResourceExhausted, wire.ReasonQuota, `owner "ana" has jobs of 12 trials, at most 12 are allowed in all`)
		f.restart()
	}
}

func TestRefusalsForQuotasAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := newFarm(t, tracker.Config{Registerer: registry, Shares: policy.Shares{Default: policy.Share{Jobs: 1, Trials: 12}}})
	wantStatus(t, f.trySubmit("1", specOf("ana", 13)), codes.ResourceExhausted, wire.ReasonQuota, "at most 12")
	f.submit("2", specOf("ana", 10))
	for range 2 {
		wantStatus(t, f.trySubmit("3", specOf("ana", 1)), codes.ResourceExhausted, wire.ReasonQuota, "at most 1")
	}
	if refused := refusals(t, registry); refused["quota_trials"] != 1 || refused["quota_jobs"] != 2 {
		t.Errorf("counted are %v", refused)
	}
}

func TestOwnersArtifactsHoldUpItsBuildsAlone(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := newFarm(t, tracker.Config{Registerer: registry, Shares: policy.Shares{Owners: map[string]policy.Share{"ana": {ArtifactBytes: 10}}}})
	f.submit("1", specOf("ana", 100))
	f.submit("2", specOf("eva", 100))
	tuner := f.tuner()
	for range 2 {
		lease := f.mustLease(tuner)
		owner := lease.GetSearch().GetJob().GetSpec().GetOwner()
		for n := range 2 {
			f.propose(lease.GetLease(), uint64(n), 0, fmt.Sprint(owner, n))
		}
	}
	builder, runner := f.builder(), f.runner()
	for range 3 { // one of ana's, which exceeds 10 bytes, and all of eva's
		f.reportBuild(f.buildReport(f.mustLease(builder)))
	}
	if w := f.lease(builder); w.GetLease() != nil {
		t.Errorf("more was built: %v", w)
	}
	wantStatus(t, f.trySubmit("3", specOf("ana", 1)), codes.ResourceExhausted, wire.ReasonQuota, `owner "ana" has 34 bytes of artifacts waiting`)
	if n := refusals(t, registry)["quota_artifacts"]; n != 1 {
		t.Errorf("%v refusals counted", n)
	}
	want := &tilthv1.Owner{Name: "ana", Weight: 1, Jobs: 1, Trials: 100, ArtifactBytes: 34, MaxArtifactBytes: 10, Waiting: 2, KeepJobs: 1000}
	got := f.owners()
	want.StoredBytes = got[0].GetStoredBytes()
	if len(got) != 2 || !proto.Equal(got[0], want) || want.StoredBytes == 0 {
		t.Errorf("owners are %v, want first %v", got, want)
	}
	for range 3 {
		w := f.mustLease(runner)
		f.report(w.GetLease(), ok(w.GetMeasure().GetCandidates()[0], 1))
	}
	if f.lease(builder).GetLease() == nil {
		t.Error("nothing more is built though all is measured")
	}
}

// TestRequestIDsAreScopedToTheirOwner is a regression test: a request id of one owner returned another owner's job.
func TestRequestIDsAreScopedToTheirOwner(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	ana := f.submit("1", specOf("ana", 10))
	for name, restart := range map[string]func(){"in memory": func() {}, "after a restart": f.restart} {
		restart()
		if eva := f.submit("1", specOf("eva", 10)); eva.GetId() == ana.GetId() || eva.GetSpec().GetOwner() != "eva" {
			t.Errorf("%s: eva's request was answered with %s of %s", name, eva.GetId(), eva.GetSpec().GetOwner())
		}
		if again := f.submit("1", specOf("ana", 10)); again.GetId() != ana.GetId() {
			t.Errorf("%s: ana's request made %s again, as %s", name, ana.GetId(), again.GetId())
		}
	}
	must[*tilthv1.CancelJobResponse](t)(f.jobs.CancelJob(t.Context(), &tilthv1.CancelJobRequest{JobId: ana.GetId()}))
	if again := f.submit("1", specOf("ana", 10)); again.GetId() != ana.GetId() {
		t.Errorf("an ended job's request made %s", again.GetId())
	}
	wantStatus(t, f.trySubmit("1", specOf("a\x00b", 10)), codes.InvalidArgument, "", "spec.owner: holds a zero byte")
}
