// This file implements the metrics of agents as decorators of their parts: the connection, the handler, the host lock
// and the reports.

package farm

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// AgentMetrics holds the metrics of every kind of agent.
type AgentMetrics struct {
	link
	held         prometheus.Gauge
	leases       *prometheus.CounterVec
	leaseSeconds prometheus.Histogram
	lockWait     prometheus.Histogram
}

// Label values for the end of a lease.
const (
	endDone    = "done"
	endFailed  = "failed"
	endDropped = "dropped"
)

// NewAgentMetrics registers the metrics of an agent. It returns an error if they are already registered.
func NewAgentMetrics(spec *tilthv1.AgentSpec, reg prometheus.Registerer) (*AgentMetrics, error) {
	a := &AgentMetrics{
		link:         newLink(),
		held:         prometheus.NewGauge(prometheus.GaugeOpts{Name: "tilth_agent_leases", Help: "Leases in work."}),
		leases:       counter("tilth_agent_leases_ended_total", "Leases that ended, by how: done, failed, or dropped by the tracker or at the agent's own end.", "end"),
		leaseSeconds: histogram("tilth_agent_lease_seconds", "Time from a lease's arrival to its end.", 0.001, 20),
		lockWait:     histogram("tilth_agent_lock_wait_seconds", "Time waited for the host's lock, which keeps what is timed apart from what computes.", 0.0001, 20),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tilth_agent_info", Help: "Always 1: what kind of agent it is, and of what version.",
		ConstLabels: prometheus.Labels{"kind": wire.AgentKind(spec.GetKind()), "version": spec.GetVersion()},
	})
	info.Set(1)
	for _, end := range []string{endDone, endFailed, endDropped} {
		a.leases.WithLabelValues(end)
	}
	return a, register(reg, info, a.connected, a.calls, a.heartbeat, a.held, a.leases, a.leaseSeconds, a.lockWait)
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

func counter(name, help, label string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
}

// histogram returns a histogram of n buckets with doubling widths.
func histogram(name, help string, shortest float64, n int) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(shortest, 2, n)})
}

func register(reg prometheus.Registerer, list ...prometheus.Collector) error {
	for _, c := range list {
		if err := reg.Register(c); err != nil {
			return err
		}
	}
	return nil
}
