// This file implements the metrics of agents as decorators of their parts: the connection, the handler, the host lock
// and the reports.

package farm

import (
	"context"
	"errors"
	"path"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// AgentMetrics holds the metrics of every kind of agent.
type AgentMetrics struct {
	calls        *prometheus.CounterVec
	heartbeat    prometheus.Histogram
	held         prometheus.Gauge
	leases       *prometheus.CounterVec
	leaseSeconds prometheus.Histogram
	lockWait     prometheus.Histogram
	// session is the result of the last call that renews the session.
	session atomic.Pointer[error]
}

// Label values for the end of a lease.
const (
	endDone    = "done"
	endFailed  = "failed"
	endDropped = "dropped"
)

// Reasons other than a failed call why an agent is not ready.
var (
	errNotJoined = errors.New("no tracker has let the agent join yet")
	errLeft      = errors.New("the agent has left the tracker")
)

// NewAgentMetrics registers the metrics of an agent. They must not be registered already.
func NewAgentMetrics(spec *tilthv1.AgentSpec, reg prometheus.Registerer) *AgentMetrics {
	auto := promauto.With(reg)
	a := &AgentMetrics{
		calls:        counter(reg, "tilth_agent_calls_total", "Calls to the tracker, streams not counted, by method and gRPC status.", "call", "code"),
		heartbeat:    histogram(reg, "tilth_agent_heartbeat_seconds", "Time until the tracker answered a heartbeat.", 0.0005, 16),
		held:         auto.NewGauge(prometheus.GaugeOpts{Name: "tilth_agent_leases", Help: "Leases in work."}),
		leases:       counter(reg, "tilth_agent_leases_ended_total", "Leases that ended, by how: done, failed, or dropped by the tracker or at the agent's own end.", "end"),
		leaseSeconds: histogram(reg, "tilth_agent_lease_seconds", "Time from a lease's arrival to its end.", 0.001, 20),
		lockWait:     histogram(reg, "tilth_agent_lock_wait_seconds", "Time waited for the host's lock, which keeps what is timed apart from what computes.", 0.0001, 20),
	}
	a.session.Store(&errNotJoined)
	auto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tilth_agent_connected", Help: "1 while the tracker knows the agent's session, by its last answer; 0 otherwise.",
	}, func() float64 {
		if *a.session.Load() == nil {
			return 1
		}
		return 0
	})
	auto.NewGauge(prometheus.GaugeOpts{
		Name: "tilth_agent_info", Help: "Always 1: what kind of agent it is, and of what version.",
		ConstLabels: prometheus.Labels{"kind": wire.AgentKind(spec.GetKind()), "version": spec.GetVersion()},
	}).Set(1)
	for _, end := range []string{endDone, endFailed, endDropped} {
		a.leases.WithLabelValues(end)
	}
	return a
}

// Ready returns why the agent cannot get work, or nil if its last heartbeat succeeded.
func (a *AgentMetrics) Ready(context.Context) error { return *a.session.Load() }

// DialOption returns an option that counts the calls of a connection.
func (a *AgentMetrics) DialOption() grpc.DialOption { return grpc.WithChainUnaryInterceptor(a.count) }

func (a *AgentMetrics) count(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	began := time.Now()
	err := next(ctx, method, req, reply, conn, opts...)
	a.calls.WithLabelValues(path.Base(method), status.Code(err).String()).Inc()
	switch method {
	case tilthv1.AgentService_Heartbeat_FullMethodName:
		a.heartbeat.Observe(time.Since(began).Seconds())
		a.renewed(err)
	case tilthv1.AgentService_Join_FullMethodName:
		a.renewed(err)
	case tilthv1.AgentService_Leave_FullMethodName:
		a.renewed(errLeft)
	}
	return err
}

// renewed records the result of a call that renews the session. The tracker's address only goes to the log, not to the
// health page.
func (a *AgentMetrics) renewed(err error) {
	if err != nil && status.Code(err) != 0 && !errors.Is(err, errLeft) {
		err = errors.New("the tracker does not answer as it should: " + status.Code(err).String() + ", see the log")
	}
	a.session.Store(&err)
}

// Handler wraps a handler and counts its leases.
func (a *AgentMetrics) Handler(next agent.Handler) agent.Handler {
	return agent.HandlerFunc(func(ctx context.Context, work *tilthv1.LeaseWorkResponse) error {
		a.held.Inc()
		defer a.held.Dec()
		began := time.Now()
		err := next.Handle(ctx, work)
		a.leaseSeconds.Observe(time.Since(began).Seconds())
		a.leases.WithLabelValues(end(ctx, err)).Inc()
		return err
	})
}

func end(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return endDone
	case ctx.Err() != nil || agent.Stale(err):
		return endDropped
	}
	return endFailed
}

// Lock wraps a lock and measures its waits.
func (a *AgentMetrics) Lock(next func(context.Context) (release func(), err error)) func(context.Context) (func(), error) {
	return func(ctx context.Context) (func(), error) {
		began := time.Now()
		release, err := next(ctx)
		a.lockWait.Observe(time.Since(began).Seconds())
		return release, err
	}
}

// counter registers a counter.
func counter(reg prometheus.Registerer, name, help string, labels ...string) *prometheus.CounterVec {
	return promauto.With(reg).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// histogram registers a histogram of n buckets with doubling widths.
func histogram(reg prometheus.Registerer, name, help string, shortest float64, n int) prometheus.Histogram {
	return promauto.With(reg).NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(shortest, 2, n)})
}

// outcomes counts candidates by error class.
type outcomes struct{ *prometheus.CounterVec }

// begin shows the given classes, success and failures of the farm before the first candidate.
func (o outcomes) begin(classes ...tilthv1.ErrorClass) {
	for _, class := range append(classes, tilthv1.ErrorClass_ERROR_CLASS_NONE, tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA) {
		o.WithLabelValues(wire.ErrorClassOrNone(class))
	}
}

func (o outcomes) add(class tilthv1.ErrorClass) {
	o.WithLabelValues(wire.ErrorClassOrNone(class)).Inc()
}

// countReports wraps next and counts accepted reports. A batch that failed as a whole counts once.
func countReports[R interface{ GetInfraError() tilthv1.ErrorClass }](
	next func(context.Context, R) error, o outcomes, count func(R),
) func(context.Context, R) error {
	return func(ctx context.Context, report R) error {
		if err := next(ctx, report); err != nil {
			return err
		}
		if class := report.GetInfraError(); class != tilthv1.ErrorClass_ERROR_CLASS_UNSPECIFIED {
			o.add(class)
		}
		count(report)
		return nil
	}
}

// BuilderMetrics holds the metrics of builders.
type BuilderMetrics struct {
	candidates outcomes
	seconds    prometheus.Histogram
}

// NewBuilderMetrics registers the metrics of a builder.
func NewBuilderMetrics(reg prometheus.Registerer) *BuilderMetrics {
	b := &BuilderMetrics{
		candidates: outcomes{counter(reg, "tilth_builder_candidates_total", "Candidates built, by error class.", "error")},
		seconds:    histogram(reg, "tilth_builder_candidate_seconds", "A candidate's share of its batch's build.", 0.001, 16),
	}
	b.candidates.begin(tilthv1.ErrorClass_ERROR_CLASS_BAD_SCHEDULE, tilthv1.ErrorClass_ERROR_CLASS_COMPILE_ERROR,
		tilthv1.ErrorClass_ERROR_CLASS_COMPILE_LIMIT, tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA)
	return b
}

// Report wraps next and counts accepted reports. A batch that failed as a whole counts once.
func (b *BuilderMetrics) Report(next func(context.Context, *tilthv1.ReportBuildRequest) error) func(context.Context, *tilthv1.ReportBuildRequest) error {
	return countReports(next, b.candidates, func(report *tilthv1.ReportBuildRequest) {
		for _, o := range report.GetOutcomes() {
			b.candidates.add(o.GetError())
			b.seconds.Observe(o.GetBuildSeconds())
		}
	})
}

// RunnerMetrics holds the metrics of runners.
type RunnerMetrics struct {
	candidates outcomes
	seconds    prometheus.Histogram
	disturbed  prometheus.Histogram
}

// NewRunnerMetrics registers the metrics of a runner.
func NewRunnerMetrics(reg prometheus.Registerer) *RunnerMetrics {
	r := &RunnerMetrics{
		candidates: outcomes{counter(reg, "tilth_runner_candidates_total", "Candidates measured, by error class.", "error")},
		seconds:    histogram(reg, "tilth_runner_candidate_seconds", "Time a candidate held the device.", 0.001, 16),
		disturbed: promauto.With(reg).NewHistogram(prometheus.HistogramOpts{
			Name: "tilth_runner_calibration_ratio", Help: "Around each measurement, time of the calibration kernel over the least known: 1 on a calm device.",
			Buckets: []float64{1.005, 1.01, 1.02, 1.03, 1.05, 1.08, 1.15, 1.3, 1.6, 2, 4},
		}),
	}
	r.candidates.begin(tilthv1.ErrorClass_ERROR_CLASS_WRONG_RESULT, tilthv1.ErrorClass_ERROR_CLASS_CRASH,
		tilthv1.ErrorClass_ERROR_CLASS_TIMEOUT, tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA)
	return r
}

// Report wraps next and counts accepted reports. A batch that failed as a whole counts once.
func (r *RunnerMetrics) Report(next func(context.Context, *tilthv1.ReportMeasurementsRequest) error) func(context.Context, *tilthv1.ReportMeasurementsRequest) error {
	return countReports(next, r.candidates, func(report *tilthv1.ReportMeasurementsRequest) {
		for _, m := range report.GetMeasurements() {
			r.candidates.add(m.GetError())
			if m.GetRunSeconds() > 0 {
				r.seconds.Observe(m.GetRunSeconds())
			}
			if m.GetCalibrationRatio() > 0 {
				r.disturbed.Observe(m.GetCalibrationRatio())
			}
		}
	})
}

// TunerMetrics holds the metrics of tuners and implements tuner.Observer.
type TunerMetrics struct {
	proposed prometheus.Counter
	seconds  prometheus.Histogram
	pairs    *prometheus.CounterVec
}

// Label values that tell whether two candidates were measured in the predicted order.
const (
	orderRight = "right"
	orderWrong = "wrong"
)

// NewTunerMetrics registers the metrics of a tuner.
func NewTunerMetrics(reg prometheus.Registerer) *TunerMetrics {
	t := &TunerMetrics{
		proposed: promauto.With(reg).NewCounter(prometheus.CounterOpts{Name: "tilth_tuner_candidates_total", Help: "Candidates that searches proposed."}),
		seconds:  histogram(reg, "tilth_tuner_search_seconds", "Time of a search for one batch.", 0.001, 16),
		pairs: counter(reg, "tilth_tuner_ranked_pairs_total",
			"Pairs of a batch's candidates whose latencies differ by more than 5 %, by whether the cost model had ranked them right.", "order"),
	}
	t.pairs.WithLabelValues(orderRight)
	t.pairs.WithLabelValues(orderWrong)
	return t
}

// Searched implements tuner.Observer.
func (t *TunerMetrics) Searched(candidates int, seconds float64) {
	t.proposed.Add(float64(candidates))
	t.seconds.Observe(seconds)
}

// Ranked implements tuner.Observer.
func (t *TunerMetrics) Ranked(right, wrong int) {
	t.pairs.WithLabelValues(orderRight).Add(float64(right))
	t.pairs.WithLabelValues(orderWrong).Add(float64(wrong))
}
