package telemetry

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/internal/wire"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	"github.com/tilth-dev/tilth/tracker/policy"
	"github.com/tilth-dev/tilth/tracker/state"
)

// stateCollector exports the figures of the state machine.
type stateCollector struct {
	figures                               func() state.Figures
	streams                               func() int
	queued, jobs, batches, agents, leases *prometheus.Desc
	retries, silent                       *prometheus.Desc
	ownerJobs, ownerTrials, ownerBytes    *prometheus.Desc
	specBytes, candidateBytes             *prometheus.Desc
	ended, endedBytes                     *prometheus.Desc
	waits, watches                        *prometheus.Desc
	waiting                               *prometheus.Desc
}

// desc describes a metric of the tracker.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("tilth_tracker_"+name, help, labels, nil)
}

func newStateCollector(from Sources) *stateCollector {
	return &stateCollector{
		figures:        from.State,
		streams:        from.Streams,
		queued:         desc("queue_depth", "Work waiting for an agent, by kind and class of agent.", "kind", "class"),
		jobs:           desc("open_jobs", "Jobs that have not ended, by state.", "state"),
		batches:        desc("batches", "Batches in progress, by stage.", "stage"),
		agents:         desc("agents", "Known agents, by kind and state.", "kind", "state"),
		leases:         desc("leases", "Current leases."),
		retries:        desc("retries_waiting", "Failed work waiting for a retry."),
		silent:         desc("outage_silent_agents", "Silent agents during an outage; 0 without an outage."),
		ownerJobs:      desc("owner_jobs", "Jobs that have not ended, by owner.", "owner"),
		ownerTrials:    desc("owner_trials", "Maximum number of trials of open jobs, by owner.", "owner"),
		ownerBytes:     desc("owner_artifact_bytes", "Artifacts of batches that wait for a runner or are leased by one, by owner.", "owner"),
		specBytes:      desc("spec_bytes", "Job specifications in memory."),
		candidateBytes: desc("candidate_bytes", "Candidates in memory."),
		ended:          desc("ended_jobs", "Retained ended jobs."),
		endedBytes:     desc("ended_jobs_bytes", "Stored size of retained ended jobs, without records."),
		waits:          desc("waiting_agents", "Waiting requests for work."),
		waiting:        desc("waiting_jobs", "Jobs without progress, by reason.", "reason"),
		watches:        desc("watch_streams", "Open event streams."),
	}
}

// Describe implements prometheus.Collector.
func (s *stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.queued, s.jobs, s.batches, s.agents, s.leases, s.retries, s.silent,
		s.ownerJobs, s.ownerTrials, s.ownerBytes, s.specBytes, s.candidateBytes, s.ended, s.endedBytes, s.waits, s.watches, s.waiting} {
		ch <- d
	}
}

// maxSeries bounds the owners and classes with individual metrics; those with the most jobs or waiting work come
// first. Clients choose the names, so their number must be bounded.
const maxSeries = 1000

// Collect implements prometheus.Collector.
func (s *stateCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	f := s.figures()
	gauge(s.leases, int64(f.Leases))
	gauge(s.retries, int64(f.Retries))
	gauge(s.specBytes, f.SpecBytes)
	gauge(s.candidateBytes, f.CandidateBytes)
	gauge(s.ended, int64(f.Ended))
	gauge(s.endedBytes, f.EndedBytes)
	gauge(s.watches, int64(s.streams()))
	for _, owner := range greatest(f.Owners, func(u policy.Usage) int { return u.Jobs }) {
		u := f.Owners[owner]
		gauge(s.ownerJobs, int64(u.Jobs), owner)
		gauge(s.ownerTrials, int64(u.Trials), owner)
		gauge(s.ownerBytes, u.ArtifactBytes, owner)
	}
	gauge(s.waits, int64(f.Waiters))
	gauge(s.silent, int64(f.Silent))
	for _, need := range greatest(f.Queues, func(n int) int { return n }) {
		gauge(s.queued, int64(f.Queues[need]), wire.AgentKind(need.Kind), need.Class)
	}
	for a, n := range f.Agents {
		gauge(s.agents, int64(n), wire.AgentKind(a.Kind), wire.AgentState(a.State))
	}
	for state, n := range f.Jobs {
		gauge(s.jobs, int64(n), wire.JobState(state))
	}
	for reason, n := range f.Reasons {
		gauge(s.waiting, int64(n), wire.WaitReason(reason))
	}
	for stage, n := range f.Batches {
		gauge(s.batches, int64(n), stageName(stage))
	}
}

// greatest returns the keys with the largest values, at most maxSeries.
func greatest[K comparable, V any](of map[K]V, size func(V) int) []K {
	keys := slices.Collect(maps.Keys(of))
	if len(keys) > maxSeries {
		slices.SortFunc(keys, func(a, b K) int { return cmp.Compare(size(of[b]), size(of[a])) })
		keys = keys[:maxSeries]
	}
	return keys
}

func stageName(s storev1.Stage) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "STAGE_"))
}
