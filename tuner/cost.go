package tuner

import tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"

// costed returns a measurement on the scale of the search. If the objective is energy, times are replaced by
// the time that the candidate's energy would last at the power of the task's first candidate, because the
// search only handles seconds.
func (t *task) costed(m *tilthv1.Measurement) *tilthv1.Measurement {
	joules, seconds := m.GetEnergyJoules(), m.GetLatencySeconds()
	if joules == 0 || seconds == 0 {
		return m
	}
	watts := joules / seconds
	if t.watts == 0 {
		t.watts = watts
	}
	share := watts / t.watts
	return &tilthv1.Measurement{
		Candidate: m.GetCandidate(), LatencySeconds: share * seconds, BuildSeconds: m.GetBuildSeconds(), RunSeconds: m.GetRunSeconds(),
		Error: m.GetError(), Remeasured: m.GetRemeasured(), RelativeError: m.GetRelativeError(),
		Interval: &tilthv1.Interval{
			LowSeconds: share * m.GetInterval().GetLowSeconds(), HighSeconds: share * m.GetInterval().GetHighSeconds(), Level: m.GetInterval().GetLevel(),
		},
	}
}

// confirm adopts the tracker's choice of a candidate's best measurement, in seconds. It does nothing for
// energy, where a better measurement is recognised by its value.
func (t *task) confirm(m *tilthv1.Measurement, best float64) {
	switch latency := m.GetLatencySeconds(); {
	case t.watts == 0 && best > 0:
		t.best = best
	case t.watts > 0 && latency > 0 && latency < t.best:
		t.best = latency
	}
}
