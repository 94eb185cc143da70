package tracker

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/internal/wire/names"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// stateCollector counts what is in the tracker's memory.
type stateCollector struct {
	tracker                               *Tracker
	queued, jobs, batches, agents, leases *prometheus.Desc
	retries, silent                       *prometheus.Desc
	ownerJobs, ownerTrials, ownerBytes    *prometheus.Desc
	specBytes, candidateBytes             *prometheus.Desc
	ended, endedBytes                     *prometheus.Desc
	waits, watches                        *prometheus.Desc
	waiting                               *prometheus.Desc
}

func newStateCollector(t *Tracker) *stateCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("tilth_tracker_"+name, help, labels, nil)
	}
	return &stateCollector{
		tracker:        t,
		queued:         desc("queue_depth", "Work that waits for an agent, by the kind and class it needs.", "kind", "class"),
		jobs:           desc("open_jobs", "Jobs that have not ended, by state.", "state"),
		batches:        desc("batches", "Batches under way, by stage.", "stage"),
		agents:         desc("agents", "Agents that ever joined, by kind and state.", "kind", "state"),
		leases:         desc("leases", "Leases in force."),
		retries:        desc("retries_waiting", "Work that failed and waits to be tried again."),
		silent:         desc("outage_silent_agents", "Agents that are waited for since most fell silent at once; 0 while there is no outage."),
		ownerJobs:      desc("owner_jobs", "Jobs that have not ended, by owner.", "owner"),
		ownerTrials:    desc("owner_trials", "Trials that the jobs which have not ended may come to, by owner.", "owner"),
		ownerBytes:     desc("owner_artifact_bytes", "Artifacts of batches that wait for a runner or are with one, by owner.", "owner"),
		specBytes:      desc("spec_bytes", "Specifications of jobs in memory."),
		candidateBytes: desc("candidate_bytes", "Candidates of batches under way in memory."),
		ended:          desc("ended_jobs", "Jobs that have ended and are kept."),
		endedBytes:     desc("ended_jobs_bytes", "What is stored of them, without records."),
		waits:          desc("waiting_agents", "Requests for work that wait."),
		waiting:        desc("waiting_jobs", "Jobs of which nothing is being done, by what they wait for.", "reason"),
		watches:        desc("watch_streams", "Streams of events."),
	}
}

// Describe implements prometheus.Collector.
func (s *stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.queued, s.jobs, s.batches, s.agents, s.leases, s.retries, s.silent,
		s.ownerJobs, s.ownerTrials, s.ownerBytes, s.specBytes, s.candidateBytes, s.ended, s.endedBytes, s.waits, s.watches, s.waiting} {
		ch <- d
	}
}

// mostSeries bounds the owners and the classes that have metrics of their own: of more, those with the most jobs, or
// with the most work that waits, do. Names are anybody's to invent.
const mostSeries = 1000

// Collect implements prometheus.Collector. What it tells is counted under the tracker's lock, and sent without.
func (s *stateCollector) Collect(ch chan<- prometheus.Metric) {
	for _, m := range s.gather() {
		ch <- m
	}
}

func (s *stateCollector) gather() (all []prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value int64, labels ...string) {
		all = append(all, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...))
	}
	t := s.tracker
	t.mu.Lock()
	defer t.mu.Unlock()
	gauge(s.leases, int64(len(t.leases)))
	gauge(s.retries, int64(len(t.retries)))
	gauge(s.specBytes, t.load.specBytes)
	gauge(s.candidateBytes, t.load.candidateBytes)
	gauge(s.ended, int64(t.archive.Len()))
	gauge(s.endedBytes, t.archive.Bytes())
	gauge(s.watches, int64(t.watches.count()))
	for _, owner := range greatest(t.owners, func(u *usage) int { return u.Jobs }) {
		u := t.owners[owner]
		gauge(s.ownerJobs, int64(u.Jobs), owner)
		gauge(s.ownerTrials, int64(u.Trials), owner)
		gauge(s.ownerBytes, u.ArtifactBytes, owner)
	}
	waits := 0
	for _, a := range t.sessions {
		waits += len(a.waiters)
	}
	gauge(s.waits, int64(waits))
	gauge(s.silent, int64(t.outageShown().GetSilent()))
	depths := t.depths()
	for _, c := range greatest(depths, func(n int) int { return n }) {
		gauge(s.queued, int64(depths[c]), names.AgentKind(c.kind), c.name)
	}
	count := map[[2]string]int64{}
	for _, a := range t.agents {
		count[[2]string{names.AgentKind(a.spec.GetKind()), names.AgentState(a.state())}]++
	}
	for k, n := range count {
		gauge(s.agents, n, k[0], k[1])
	}
	for state, n := range t.jobStates() {
		gauge(s.jobs, n, names.JobState(state))
	}
	for reason, n := range t.waitReasons() {
		gauge(s.waiting, int64(n), reason)
	}
	stages := map[storev1.Stage]int64{}
	for _, b := range t.batches {
		stages[b.stage]++
	}
	for stage, n := range stages {
		gauge(s.batches, n, stageName(stage))
	}
	return all
}

// depths is how much work waits, by the kind and the name of its class.
func (t *Tracker) depths() map[class]int {
	depths := make(map[class]int, len(t.queues))
	for c, q := range t.queues {
		depths[class{kind: c.kind, name: c.name}] += q.work.Len()
	}
	return depths
}

// greatest are the keys of the greatest values, as many as have metrics of their own.
func greatest[K comparable, V any](of map[K]V, size func(V) int) []K {
	keys := slices.Collect(maps.Keys(of))
	if len(keys) > mostSeries {
		slices.SortFunc(keys, func(a, b K) int { return cmp.Compare(size(of[b]), size(of[a])) })
		keys = keys[:mostSeries]
	}
	return keys
}

// jobStates counts the open jobs. The caller holds the lock.
func (t *Tracker) jobStates() map[tilthv1.JobState]int64 {
	states := map[tilthv1.JobState]int64{}
	for _, j := range t.jobs {
		states[j.meta.GetState()]++
	}
	return states
}

func stageName(s storev1.Stage) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "STAGE_"))
}
