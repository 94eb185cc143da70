package tracker

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/internal/show"
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
	waits, watches                        *prometheus.Desc
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
		waits:          desc("waiting_agents", "Requests for work that wait."),
		watches:        desc("watch_streams", "Streams of events."),
	}
}

// Describe implements prometheus.Collector.
func (s *stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.queued, s.jobs, s.batches, s.agents, s.leases, s.retries, s.silent,
		s.ownerJobs, s.ownerTrials, s.ownerBytes, s.specBytes, s.candidateBytes, s.waits, s.watches} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s *stateCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	t := s.tracker
	t.mu.Lock()
	defer t.mu.Unlock()
	gauge(s.leases, int64(len(t.leases)))
	gauge(s.retries, int64(len(t.retries)))
	gauge(s.specBytes, t.load.specBytes)
	gauge(s.candidateBytes, t.load.candidateBytes)
	gauge(s.watches, int64(t.watches.count()))
	for owner, u := range t.owners {
		gauge(s.ownerJobs, int64(u.jobs), owner)
		gauge(s.ownerTrials, int64(u.trials), owner)
		gauge(s.ownerBytes, u.artifactBytes, owner)
	}
	waits := 0
	for _, a := range t.sessions {
		waits += len(a.waiters)
	}
	gauge(s.waits, int64(waits))
	gauge(s.silent, int64(t.outageShown().GetSilent()))
	for c, q := range t.queues {
		gauge(s.queued, int64(q.work.Len()), show.AgentKind(c.kind), c.name)
	}
	count := map[[2]string]int64{}
	for _, a := range t.agents {
		count[[2]string{show.AgentKind(a.spec.GetKind()), show.AgentState(a.state())}]++
	}
	for k, n := range count {
		gauge(s.agents, n, k[0], k[1])
	}
	for state, n := range t.jobStates() {
		gauge(s.jobs, n, show.JobState(state))
	}
	stages := map[storev1.Stage]int64{}
	for _, b := range t.batches {
		stages[b.stage]++
	}
	for stage, n := range stages {
		gauge(s.batches, n, stageName(stage))
	}
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
