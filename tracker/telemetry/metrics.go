package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// Metrics holds the metrics that are updated by events. Figures that can be computed from the state are collected on
// demand.
type Metrics struct {
	granted      *prometheus.CounterVec
	expired      *prometheus.CounterVec
	stale        *prometheus.CounterVec
	repeated     *prometheus.CounterVec
	refused      *prometheus.CounterVec
	trials       *prometheus.CounterVec
	deadLetters  *prometheus.CounterVec
	cooldowns    prometheus.Counter
	outages      prometheus.Counter
	calibrations prometheus.Counter
	quarantines  prometheus.Counter
	warnings     prometheus.Counter
	buildSeconds prometheus.Histogram
	runSeconds   prometheus.Histogram
	commit       prometheus.Histogram
	fsync        prometheus.Histogram
	calls        *prometheus.CounterVec
	callSeconds  *prometheus.HistogramVec
	queueWait    *prometheus.HistogramVec
	leaseSeconds *prometheus.HistogramVec
	commitCalls  prometheus.Counter
	refusedPeers prometheus.Counter
	rowsChecked  prometheus.Counter
	backups      *backupMetrics
	storeChecked prometheus.Gauge
	refusedCalls *prometheus.CounterVec
	dropped      *prometheus.CounterVec
}

// New creates and registers the metrics.
func New(reg prometheus.Registerer, from Sources) (*Metrics, error) {
	counter := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tilth_tracker_" + name, Help: help}, []string{label})
	}
	count := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "tilth_tracker_" + name, Help: help})
	}
	histogram := func(name, help string, shortest float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tilth_tracker_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(shortest, 2, 16),
		})
	}
	kinds := func(name, help string, shortest float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tilth_tracker_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(shortest, 2, 20),
		}, []string{"kind"})
	}
	m := &Metrics{
		granted:      counter("leases_granted_total", "Leases granted, by the kind of the agent.", "kind"),
		expired:      counter("leases_expired_total", "Leases lost for want of a heartbeat, by the kind of the agent.", "kind"),
		stale:        counter("stale_reports_total", "Calls refused because their lease was no longer held.", "call"),
		repeated:     counter("repeated_calls_total", "Calls that had taken effect before and changed nothing.", "call"),
		refused:      counter("refused_total", "Calls refused for a quota of their owner or for want of room, by which.", "limit"),
		dropped:      counter("jobs_dropped_total", "Jobs that had ended and are no longer kept, by why.", "why"),
		trials:       counter("trials_total", "Trials recorded, by error class.", "error"),
		refusedCalls: counter("calls_refused_total", "Calls and pages refused for who called, or how often, by the code of the refusal.", "code"),
		deadLetters:  counter("dead_letters_total", "Batches given up, by error class.", "error"),
		buildSeconds: histogram("build_seconds", "A candidate's share of its batch's build.", 0.001),
		runSeconds:   histogram("run_seconds", "Time a candidate held its device.", 0.001),
		commit:       histogram("commit_seconds", "Time of a transaction of the records file, which carries many calls.", 0.0001),
		fsync:        histogram("fsync_seconds", "Part of a transaction's time in which the disk took its pages, by two fsyncs.", 0.0001),
		calls:        newCalls(),
		callSeconds:  newCallSeconds(),
		queueWait:    kinds("queue_wait_seconds", "Time from when work could be leased until it was, by the kind of the agent.", 0.001),
		leaseSeconds: kinds("lease_held_seconds", "Time from a lease until its end, however it ended, by the kind of the agent.", 0.001),
		cooldowns:    count("agent_rests_total", "Times that an agent was given a rest since all its leases failed."),
		outages:      count("outages_total", "Times that most agents fell silent at once."),
		calibrations: count("calibrations_total", "Calibrations of devices taken in."),
		quarantines:  count("quarantines_total", "Times that a device was put into quarantine, or kept there, for what a calibration said."),
		warnings:     count("device_warnings_total", "Times that a device began to be warned about: the only one of its class, it measures badly and is given work all the same."),
		commitCalls:  count("commit_calls_total", "Calls whose changes were written to the records file."),
		backups:      newBackupMetrics(from.BackupEvery),
		rowsChecked:  count("store_rows_checked_total", "Rows of the records file that were read and compared with their checksums by the scrubber."),
		storeChecked: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tilth_tracker_store_checked_timestamp_seconds", Help: "When all rows of the records file had been checked last; 0 = not since the start.",
		}),
		refusedPeers: count("connections_refused_total", "Connections closed at once because there were too many."),
	}
	for _, c := range append(append(securityMetrics(from), m.backups.all()...),
		m.granted, m.expired, m.stale, m.repeated, m.refused, m.dropped, m.trials, m.deadLetters, m.cooldowns, m.outages, m.buildSeconds, m.runSeconds,
		m.commit, m.fsync, m.commitCalls, m.refusedPeers, m.rowsChecked, m.storeChecked, m.refusedCalls, m.calls, m.callSeconds, m.queueWait, m.leaseSeconds,
		m.calibrations, m.quarantines, m.warnings, newStateCollector(from), newStoreCollector(from), newJobCollector(from), newDeviceCollector(from),
	) {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	m.begin()
	from.Store.Observe(m.transaction)
	return m, nil
}

// begin creates every series at the start, so that the first event counts as an increase.
func (m *Metrics) begin() {
	for _, kind := range []tilthv1.AgentKind{tilthv1.AgentKind_AGENT_KIND_TUNER, tilthv1.AgentKind_AGENT_KIND_BUILDER, tilthv1.AgentKind_AGENT_KIND_RUNNER} {
		name := wire.AgentKind(kind)
		m.granted.WithLabelValues(name)
		m.expired.WithLabelValues(name)
		m.queueWait.WithLabelValues(name)
		m.leaseSeconds.WithLabelValues(name)
	}
	for number := range tilthv1.ErrorClass_name {
		if class := tilthv1.ErrorClass(number); class != tilthv1.ErrorClass_ERROR_CLASS_UNSPECIFIED {
			m.trials.WithLabelValues(errorName(class))
			m.deadLetters.WithLabelValues(errorName(class))
		}
	}
	for _, call := range []string{"FinishJob", "ProposeBatch", "ReportBuild", "ReportMeasurements"} {
		m.stale.WithLabelValues(call)
	}
	for _, call := range []string{"DeleteJob", "FinishJob", "ProposeBatch", "ReportMeasurements", "SubmitJob"} {
		m.repeated.WithLabelValues(call)
	}
	for _, why := range []string{policy.Age, policy.Bytes, policy.Count, policy.Deleted} {
		m.dropped.WithLabelValues(why)
	}
	for _, code := range []codes.Code{codes.Unauthenticated, codes.PermissionDenied, codes.ResourceExhausted} {
		m.refusedCalls.WithLabelValues(code.String())
	}
	for _, limit := range []string{
		"load_agents", "load_agent_bytes", "load_answers", "load_classes", "load_calls", "load_candidates", "load_jobs", "load_requests", "load_specs", "load_waits", "load_batches", "load_watches", "quota_artifacts", "quota_jobs", "quota_stored", "quota_trials",
	} {
		m.refused.WithLabelValues(limit)
	}
}

func (m *Metrics) transaction(tx records.Transaction) {
	m.commit.Observe(tx.Took.Seconds())
	m.fsync.Observe(tx.Sync.Seconds())
	m.commitCalls.Add(float64(tx.Commits))
}

// errorName returns the label value of an error class.
func errorName(c tilthv1.ErrorClass) string { return wire.ErrorClassOrNone(c) }
