package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/policy"
	"github.com/tilth-dev/tilth/tracker/state"
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
	backupMade   prometheus.Gauge
	backupSize   prometheus.Gauge
	backupsKept  prometheus.Gauge
	backupFails  prometheus.Counter
	storeChecked prometheus.Gauge
	refusedCalls *prometheus.CounterVec
	dropped      *prometheus.CounterVec
}

// New creates and registers the metrics. They must not be registered already.
func New(reg prometheus.Registerer, from Sources) *Metrics {
	auto := promauto.With(reg)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return auto.NewCounterVec(prometheus.CounterOpts{Name: "tilth_tracker_" + name, Help: help}, labels)
	}
	count := func(name, help string) prometheus.Counter {
		return auto.NewCounter(prometheus.CounterOpts{Name: "tilth_tracker_" + name, Help: help})
	}
	histogram := func(name, help string, shortest float64) prometheus.Histogram {
		return auto.NewHistogram(prometheus.HistogramOpts{
			Name: "tilth_tracker_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(shortest, 2, 16),
		})
	}
	histograms := func(name, help, label string, shortest float64, buckets int) *prometheus.HistogramVec {
		return auto.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tilth_tracker_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(shortest, 2, buckets),
		}, []string{label})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return auto.NewGauge(prometheus.GaugeOpts{Name: "tilth_tracker_" + name, Help: help})
	}
	m := &Metrics{
		granted:      counter("leases_granted_total", "Leases granted, by kind of agent.", "kind"),
		expired:      counter("leases_expired_total", "Leases that expired without a heartbeat, by kind of agent.", "kind"),
		stale:        counter("stale_reports_total", "Calls refused because their lease is no longer held, by call.", "call"),
		repeated:     counter("repeated_calls_total", "Repeated calls, which changed nothing, by call.", "call"),
		refused:      counter("refused_total", "Calls refused because of a quota or a limit on memory, by limit.", "limit"),
		dropped:      counter("jobs_dropped_total", "Ended jobs dropped by the retention limits, by reason.", "why"),
		trials:       counter("trials_total", "Trials recorded, by error class.", "error"),
		refusedCalls: counter("calls_refused_total", "Calls and pages refused by access control or rate limits, by code.", "code"),
		deadLetters:  counter("dead_letters_total", "Batches given up, by error class.", "error"),
		buildSeconds: histogram("build_seconds", "Build time of a batch divided by its candidates.", 0.001),
		runSeconds:   histogram("run_seconds", "Time a candidate occupied its device.", 0.001),
		commit:       histogram("commit_seconds", "Duration of a transaction of the records file; a transaction combines calls.", 0.0001),
		fsync:        histogram("fsync_seconds", "Time that a transaction waits for the disk, in two fsyncs.", 0.0001),
		calls:        counter("calls_total", "Unary calls answered, by method and gRPC status.", "call", "code"),
		callSeconds:  histograms("call_seconds", "Duration of unary calls, by method, without long polls for work.", "call", 0.0001, 16),
		queueWait:    histograms("queue_wait_seconds", "Time that work waited for a lease, by kind of agent.", "kind", 0.001, 20),
		leaseSeconds: histograms("lease_held_seconds", "Time that a lease was held, by kind of agent.", "kind", 0.001, 20),
		cooldowns:    count("agent_rests_total", "Cooldowns of agents whose leases all failed."),
		outages:      count("outages_total", "Outages: most agents stopped sending heartbeats at the same time."),
		calibrations: count("calibrations_total", "Calibrations of devices accepted."),
		quarantines:  count("quarantines_total", "Calibrations that put a device into quarantine or kept it there."),
		warnings:     count("device_warnings_total", "Warnings about the only device of its class, which measures badly but still gets work."),
		commitCalls:  count("commit_calls_total", "Calls written to the records file."),
		backupMade:   gauge("backup_last_success_timestamp_seconds", "Start of the last successful backup, as Unix time; 0 = none."),
		backupSize:   gauge("backup_size_bytes", "Size of the last successful backup."),
		backupsKept:  gauge("backup_files", "Verified backups in the folder."),
		backupFails:  count("backup_failures_total", "Failed or damaged backups."),
		rowsChecked:  count("store_rows_checked_total", "Rows of the records file whose checksums the scrubber verified."),
		storeChecked: gauge("store_checked_timestamp_seconds",
			"End of the last complete scrub of the records file, as Unix time; 0 = none since the start."),
		refusedPeers: count("connections_refused_total", "Connections closed because of the limit on connections."),
	}
	gauge("backup_interval_seconds", "Interval between backups of the records file; 0 = backups are disabled.").Set(from.BackupEvery.Seconds())
	registerSecurity(auto, from)
	reg.MustRegister(newStateCollector(from), newStoreCollector(from), newJobCollector(from), newDeviceCollector(from))
	m.begin()
	from.Store.Observe(func(tx records.Transaction) {
		m.commit.Observe(tx.Took.Seconds())
		m.fsync.Observe(tx.Sync.Seconds())
		m.commitCalls.Add(float64(tx.Commits))
	})
	return m
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
			m.trials.WithLabelValues(wire.ErrorClassOrNone(class))
			m.deadLetters.WithLabelValues(wire.ErrorClassOrNone(class))
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

// Shards registers a metric with the number of shards.
func Shards(reg prometheus.Registerer, count int) {
	g := promauto.With(reg).NewGauge(prometheus.GaugeOpts{Name: "tilth_tracker_shards", Help: "Shards of the store."})
	g.Set(float64(max(count, 1)))
}

// Active registers a metric that reports whether the tracker is active or on standby.
func Active(reg prometheus.Registerer, serves bool) {
	g := promauto.With(reg).NewGauge(prometheus.GaugeOpts{
		Name: "tilth_tracker_active", Help: "1 if the tracker serves, 0 if it stands by because another tracker holds the database.",
	})
	if serves {
		g.Set(1)
	}
}

// Sources are the functions from which metrics are collected.
type Sources struct {
	// State, Jobs and Devices are Figures, OldestJobs and Devices of the machine.
	State   func() state.Figures
	Jobs    func(limit int) []state.JobFigures
	Devices func(limit int) (states map[tilthv1.DeviceState]int, warned int, furthest []state.DeviceFigures)
	// Streams returns the number of event streams.
	Streams func() int
	// Store is the records store. File is its file and Remote its database server; each may be nil. Artifacts returns
	// the artifact store's statistics, FreeBytes the free space for records and artifacts.
	Store     records.Store
	File      records.File
	Remote    records.Remote
	Artifacts func() artifact.Stats
	FreeBytes func() (int64, error)
	// RequestBytes and AnswerBytes return the memory held by requests and responses.
	RequestBytes, AnswerBytes func() int64
	// CertificateExpiry returns when the tracker's certificate expires; nil without one.
	CertificateExpiry func() time.Time
	// IssuerKeysRead returns when the token issuer's keys were last read, or zero; nil without an issuer.
	IssuerKeysRead func() time.Time
	// BackupEvery is the interval between backups; 0 means none.
	BackupEvery time.Duration
}

// registerSecurity registers the memory of requests and responses, and the expiry of credentials.
func registerSecurity(auto promauto.Factory, from Sources) {
	held := func(name, help string, bytes func() int64) {
		auto.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(bytes()) })
	}
	held("tilth_tracker_request_bytes", "Size of requests in progress, as encoded on the wire.", from.RequestBytes)
	held("tilth_tracker_answer_bytes", "Size of responses that are being made or have not been read.", from.AnswerBytes)
	at := func(name, help string, time func() time.Time) {
		if time == nil {
			return
		}
		auto.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			if t := time(); !t.IsZero() {
				return float64(t.Unix())
			}
			return 0
		})
	}
	at("tilth_tracker_certificate_expiry_timestamp_seconds", "Expiry of the tracker's certificate, as Unix time.", from.CertificateExpiry)
	at("tilth_tracker_issuer_keys_timestamp_seconds", "Last fetch of the token issuer's keys, as Unix time; 0 = never.", from.IssuerKeysRead)
}
