package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

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
		m.trial(f.Measurement)
	case state.Built:
		for _, seconds := range f {
			m.buildSeconds.Observe(seconds)
		}
	case state.GaveUp:
		m.deadLetters.WithLabelValues(errorName(tilthv1.ErrorClass(f))).Inc()
	case state.Dropped:
		m.dropped.WithLabelValues(string(f)).Inc()
	case state.Occurrence:
		m.occurrence(f).Inc()
	}
}

func (m *Metrics) occurrence(o state.Occurrence) prometheus.Counter {
	return map[state.Occurrence]prometheus.Counter{
		state.CooldownBegan: m.cooldowns, state.OutageBegan: m.outages, state.Calibrated: m.calibrations,
		state.Quarantined: m.quarantines, state.Warned: m.warnings,
	}[o]
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

func (m *Metrics) trial(measured *tilthv1.Measurement) {
	m.trials.WithLabelValues(errorName(measured.GetError())).Inc()
	if measured.GetRunSeconds() > 0 {
		m.runSeconds.Observe(measured.GetRunSeconds())
	}
}
