package tracker

import (
	"cmp"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/internal/show"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// metrics are the tracker's own; what can be counted in the state is collected from it when asked for.
type metrics struct {
	granted      *prometheus.CounterVec
	expired      *prometheus.CounterVec
	stale        *prometheus.CounterVec
	trials       *prometheus.CounterVec
	deadLetters  *prometheus.CounterVec
	buildSeconds prometheus.Histogram
	runSeconds   prometheus.Histogram
	commit       prometheus.Histogram
	commitCalls  prometheus.Counter
}

func newMetrics(t *Tracker, reg prometheus.Registerer) (*metrics, error) {
	counter := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tilth_tracker_" + name, Help: help}, []string{label})
	}
	histogram := func(name, help string, shortest float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tilth_tracker_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(shortest, 2, 16),
		})
	}
	m := &metrics{
		granted:      counter("leases_granted_total", "Leases granted, by the kind of the agent.", "kind"),
		expired:      counter("leases_expired_total", "Leases lost for want of a heartbeat, by the kind of the agent.", "kind"),
		stale:        counter("stale_reports_total", "Calls refused because their lease was no longer held.", "call"),
		trials:       counter("trials_total", "Trials recorded, by error class.", "error"),
		deadLetters:  counter("dead_letters_total", "Batches given up, by error class.", "error"),
		buildSeconds: histogram("build_seconds", "A candidate's share of its batch's build.", 0.001),
		runSeconds:   histogram("run_seconds", "Time a candidate held its device.", 0.001),
		commit:       histogram("commit_seconds", "Time of a transaction of the records file, which carries many calls.", 0.0001),
		commitCalls: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tilth_tracker_commit_calls_total", Help: "Calls whose changes were written to the records file.",
		}),
	}
	for _, c := range []prometheus.Collector{
		m.granted, m.expired, m.stale, m.trials, m.deadLetters, m.buildSeconds, m.runSeconds,
		m.commit, m.commitCalls, newStateCollector(t),
	} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	t.db.Observe(func(took time.Duration, calls int) {
		m.commit.Observe(took.Seconds())
		m.commitCalls.Add(float64(calls))
	})
	return m, nil
}

func (m *metrics) trial(measured *tilthv1.Measurement) {
	m.trials.WithLabelValues(errorName(measured.GetError())).Inc()
	if measured.GetRunSeconds() > 0 {
		m.runSeconds.Observe(measured.GetRunSeconds())
	}
}

// stateCollector counts what is in the tracker's memory.
type stateCollector struct {
	tracker                               *Tracker
	queued, jobs, batches, agents, leases *prometheus.Desc
	storeBytes, artifactBytes             *prometheus.Desc
}

func newStateCollector(t *Tracker) *stateCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("tilth_tracker_"+name, help, labels, nil)
	}
	return &stateCollector{
		tracker:       t,
		queued:        desc("queue_depth", "Work that waits for an agent, by the kind and class it needs.", "kind", "class"),
		jobs:          desc("open_jobs", "Jobs that have not ended, by state.", "state"),
		batches:       desc("batches", "Batches under way, by stage.", "stage"),
		agents:        desc("agents", "Agents that ever joined, by kind and state.", "kind", "state"),
		leases:        desc("leases", "Leases in force."),
		storeBytes:    desc("store_size_bytes", "Size of the records file."),
		artifactBytes: desc("artifacts_size_bytes", "Size of the artifacts, unfinished uploads included."),
	}
}

// Describe implements prometheus.Collector.
func (s *stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.queued, s.jobs, s.batches, s.agents, s.leases, s.storeBytes, s.artifactBytes} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s *stateCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	t := s.tracker
	gauge(s.storeBytes, t.db.SizeBytes())
	gauge(s.artifactBytes, t.artifacts.UsedBytes())
	t.mu.Lock()
	defer t.mu.Unlock()
	gauge(s.leases, int64(len(t.leases)))
	for c, q := range t.queues {
		gauge(s.queued, int64(q.length), show.AgentKind(c.kind), c.name)
	}
	count := map[[2]string]int64{}
	for _, a := range t.agents {
		count[[2]string{show.AgentKind(a.spec.GetKind()), show.AgentState(a.proto().GetState())}]++
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

// errorName is the name of a class as a label's value, which is not empty where there was no error.
func errorName(c tilthv1.ErrorClass) string { return cmp.Or(show.ErrorClass(c), "none") }

func stageName(s storev1.Stage) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "STAGE_"))
}
