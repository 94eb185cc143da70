package telemetry

import (
	"context"
	"path"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/state"
)

// Observe counts a fact of the state machine.
func (m *Metrics) Observe(f state.Fact) {
	switch f := f.(type) {
	case state.Granted:
		m.granted.WithLabelValues(wire.AgentKind(f.Kind)).Inc()
		m.queueWait.WithLabelValues(wire.AgentKind(f.Kind)).Observe(f.Waited.Seconds())
	case state.Ended:
		m.leaseSeconds.WithLabelValues(wire.AgentKind(f.Kind)).Observe(f.Held.Seconds())
	case state.Expired:
		m.expired.WithLabelValues(wire.AgentKind(f.Kind)).Inc()
	case state.Repeated:
		m.repeated.WithLabelValues(f.Call).Inc()
	case state.Trial:
		m.trials.WithLabelValues(wire.ErrorClassOrNone(f.Measurement.GetError())).Inc()
		if seconds := f.Measurement.GetRunSeconds(); seconds > 0 {
			m.runSeconds.Observe(seconds)
		}
	case state.Built:
		for _, seconds := range f {
			m.buildSeconds.Observe(seconds)
		}
	case state.GaveUp:
		m.deadLetters.WithLabelValues(wire.ErrorClassOrNone(tilthv1.ErrorClass(f))).Inc()
	case state.Dropped:
		m.dropped.WithLabelValues(string(f)).Inc()
	case state.Occurrence:
		map[state.Occurrence]prometheus.Counter{
			state.CooldownBegan: m.cooldowns, state.OutageBegan: m.outages, state.Calibrated: m.calibrations,
			state.Quarantined: m.quarantines, state.Warned: m.warnings,
		}[f].Inc()
	}
}

// Refused counts a call that a service refused.
func (m *Metrics) Refused(r *state.Refusal) {
	switch r.Kind {
	case state.StaleLease:
		m.stale.WithLabelValues(r.Of).Inc()
	case state.Overloaded:
		m.refused.WithLabelValues("load_" + r.Of).Inc()
	case state.OverQuota:
		m.refused.WithLabelValues("quota_" + r.Of).Inc()
	}
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

// Backups implements tracker.UpkeepObserver.
func (m *Metrics) Backups(newest time.Time, sizeBytes int64, count int) {
	m.backupMade.Set(float64(newest.Unix()))
	m.backupSize.Set(float64(sizeBytes))
	m.backupsKept.Set(float64(count))
}

// NoBackup implements tracker.UpkeepObserver.
func (m *Metrics) NoBackup() { m.backupFails.Inc() }

// RowsChecked implements tracker.UpkeepObserver.
func (m *Metrics) RowsChecked(rows int) { m.rowsChecked.Add(float64(rows)) }

// Checked implements tracker.UpkeepObserver.
func (m *Metrics) Checked(at time.Time) { m.storeChecked.Set(float64(at.Unix())) }
