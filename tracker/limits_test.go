package tracker_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
	"github.com/tilth-dev/tilth/tracker/state"
)

// gauge reads a metric, or the sum over its labels.
func gauge(t *testing.T, registry *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "tilth_tracker_"+name {
			for _, m := range family.GetMetric() {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func wantOverload(t testing.TB, err error, text string) {
	t.Helper()
	wantStatus(t, err, codes.Unavailable, wire.ReasonOverloaded, text)
	if !retry.Lost(err) {
		t.Errorf("%v is not repeated", err)
	}
}

// big returns a candidate with a trace of the given size.
func big(name string, size int) *tilthv1.Candidate {
	trace := append([]byte(name), bytes.Repeat([]byte{'x'}, size)...)
	return &tilthv1.Candidate{Trace: trace, Digest: records.Digest(trace)}
}

// TestMemoryIsBoundedUnderOverload requests far more of everything than the limits permit, and checks the memory in
// use.
func TestMemoryIsBoundedUnderOverload(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := newFarm(t, tracker.Config{Registerer: registry, Limits: state.Limits{
		Jobs: 20, JobBatches: 4, CandidateBytes: 4000, Agents: 10, AgentWaits: 3, Watches: 5,
	}})
	var job string
	for n := range 50 {
		r, err := f.jobs.SubmitJob(t.Context(), &tilthv1.SubmitJobRequest{RequestId: strconv.Itoa(n), Spec: spec("conv")})
		if n < 20 {
			job = r.GetJob().GetId()
		} else {
			wantOverload(t, err, "the tracker has 20 open jobs")
		}
	}
	tuner := f.tuner()
	proposed := 0
	for range 20 {
		lease := f.mustLease(tuner).GetLease()
		for next := uint64(0); ; next++ {
			_, err := f.search.ProposeBatch(t.Context(), &tilthv1.ProposeBatchRequest{
				Lease: lease, Proposal: next, Candidates: []*tilthv1.Candidate{big(fmt.Sprint(lease.GetSubject(), next), 200)},
			})
			if err != nil {
				wantOverload(t, err, "when some are done")
				break
			}
			proposed++
		}
	}
	if held := gauge(t, registry, "candidate_bytes"); held > 4000 || proposed > 20 || proposed < 10 {
		t.Errorf("candidates of %v bytes are held, %d batches were proposed", held, proposed)
	}
	for n := range 30 {
		_, err := f.agents.Join(t.Context(), &tilthv1.JoinRequest{Spec: agentSpec(fmt.Sprint("agent ", n), tilthv1.AgentKind_AGENT_KIND_RUNNER)})
		if n >= 9 { // including the tuner
			wantOverload(t, err, "the tracker has 10 agents")
		}
	}
	f.overload(job)
	if agents, batches := gauge(t, registry, "agents"), gauge(t, registry, "batches"); agents != 10 || batches > 80 {
		t.Errorf("%v agents and %v batches are held", agents, batches)
	}
	refused := refusals(t, registry)
	if refused["load_batches"]+refused["load_candidates"] != 20 {
		t.Errorf("of 20 refused batches of candidates are counted %v", refused)
	}
	for limit, want := range map[string]float64{"load_jobs": 30, "load_agents": 21, "load_waits": 7, "load_watches": 5} {
		if refused[limit] != want {
			t.Errorf("%s counts %v, want %v", limit, refused[limit], want)
		}
	}
}

func TestJobsBatchesAreBounded(t *testing.T) {
	f := newFarm(t, tracker.Config{Limits: state.Limits{JobBatches: 2}})
	f.submit("job", spec("conv"))
	lease := f.mustLease(f.tuner()).GetLease()
	f.propose(lease, 0, 0, "a")
	f.propose(lease, 1, 0, "b")
	_, err := f.search.ProposeBatch(t.Context(), &tilthv1.ProposeBatchRequest{Lease: lease, Proposal: 2, Candidates: candidates("c")})
	wantOverload(t, err, "has 2 batches under way")
}

func TestSpecificationsAreBounded(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := newFarm(t, tracker.Config{Registerer: registry, Limits: state.Limits{SpecBytes: 1500}})
	large := spec("conv")
	large.Target.Descriptor_ = bytes.Repeat([]byte{'x'}, 1000)
	f.submit("1", large)
	wantOverload(t, f.trySubmit("2", large), "and no room for 1")
	if held, refused := gauge(t, registry, "spec_bytes"), refusals(t, registry)["load_specs"]; held < 1000 || held > 1500 || refused != 1 {
		t.Errorf("%v bytes are held, %v refusals counted", held, refused)
	}
}

// refusals returns the number of refused calls by limit.
func refusals(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() == "tilth_tracker_refused_total" {
			for _, m := range family.GetMetric() {
				counts[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return counts
}

// TestLimitMetricsExistFromTheStart: the first refusal must be visible as an increase.
func TestLimitMetricsExistFromTheStart(t *testing.T) {
	registry := prometheus.NewRegistry()
	newFarm(t, tracker.Config{Registerer: registry})
	want := []string{"load_agent_bytes", "load_agents", "load_answers", "load_batches", "load_calls", "load_candidates", "load_classes", "load_jobs", "load_requests", "load_specs", "load_waits", "load_watches",
		"quota_artifacts", "quota_jobs", "quota_stored", "quota_trials"}
	if got := slices.Sorted(maps.Keys(refusals(t, registry))); !slices.Equal(got, want) {
		t.Errorf("limits are %v, want %v", got, want)
	}
}

// overload opens more long polls and streams than permitted, and waits until the excess is refused.
func (f *trackerFarm) overload(job string) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 10*time.Minute)
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel()
	session := f.join("agent 0", tilthv1.AgentKind_AGENT_KIND_RUNNER)
	waits, watches := make(chan error, 10), make(chan error, 10)
	for range 10 {
		open.Go(func() {
			_, err := f.agents.LeaseWork(ctx, &tilthv1.LeaseWorkRequest{Session: session, Wait: seconds(60)})
			waits <- err
		})
		open.Go(func() {
			stream, err := f.jobs.WatchJob(ctx, &tilthv1.WatchJobRequest{JobId: job})
			for err == nil {
				_, err = stream.Recv()
			}
			watches <- err
		})
	}
	for range 7 {
		wantOverload(f, <-waits, "agent agent 0 waits for work 3 times")
	}
	for range 5 {
		wantOverload(f, <-watches, "the tracker sends 5 streams of events")
	}
}

func TestUnusedQueuesAreRemoved(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := newFarm(t, tracker.Config{Registerer: registry})
	for n := range 100 {
		s := spec("conv")
		s.Tuner, s.Target.Toolchain, s.Target.DeviceClass = fmt.Sprint("t", n), fmt.Sprint("c", n), fmt.Sprint("d", n)
		id := f.submit(strconv.Itoa(n), s).GetId()
		must[*tilthv1.CancelJobResponse](t)(f.jobs.CancelJob(t.Context(), &tilthv1.CancelJobRequest{JobId: id}))
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if strings.HasSuffix(family.GetName(), "queue_depth") {
			t.Errorf("queues are left: %v", family.GetMetric())
		}
	}
}
