package telemetry

import (
	"context"
	"path"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func newCalls() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tilth_tracker_calls_total", Help: "Unary calls answered, by method and gRPC status.",
	}, []string{"call", "code"})
}

func newCallSeconds() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "tilth_tracker_call_seconds", Help: "Duration of unary calls, by method, without long polls for work.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
	}, []string{"call"})
}

// Count is an interceptor that counts and times calls.
func (m *Metrics) Count(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	began := time.Now()
	response, err := next(ctx, req)
	name := path.Base(info.FullMethod)
	m.calls.WithLabelValues(name, status.Code(err).String()).Inc()
	if info.FullMethod != tilthv1.AgentService_LeaseWork_FullMethodName {
		m.callSeconds.WithLabelValues(name).Observe(time.Since(began).Seconds())
	}
	return response, err
}

// RefusedCall counts a call that was refused before it reached a service.
func (m *Metrics) RefusedCall(fullMethod string, err error) {
	m.calls.WithLabelValues(path.Base(fullMethod), status.Code(err).String()).Inc()
}

// RefusedCaller counts a call or page refused because of the caller or its rate.
func (m *Metrics) RefusedCaller(code codes.Code) { m.refusedCalls.WithLabelValues(code.String()).Inc() }

// RefusedPeer counts a connection that was closed at once because of the limit.
func (m *Metrics) RefusedPeer() { m.refusedPeers.Inc() }

// OverBudget counts a call that was refused because its request or response exceeds the memory limit.
func (m *Metrics) OverBudget(of string) { m.refused.WithLabelValues("load_" + of).Inc() }
