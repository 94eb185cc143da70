package tuner

import tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"

// costed is a measurement as the search sees it. Where the objective is energy, its times are those that the candidate
// would take if it spent its energy at the power of the task's first: the search knows seconds alone.
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

// confirm takes the tracker's word on which measurement of a candidate counts: its best, in seconds. In energy it says
// nothing, and a measurement that is better speaks for itself.
func (t *task) confirm(m *tilthv1.Measurement, best float64) {
	switch latency := m.GetLatencySeconds(); {
	case t.watts == 0 && best > 0:
		t.best = best
	case t.watts > 0 && latency > 0 && latency < t.best:
		t.best = latency
	}
}
