package tuner

import (
	"math"
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestSearchSeesEnergyAsTime converts energy to time at the power of a task's first candidate.
func TestSearchSeesEnergyAsTime(t *testing.T) {
	made := func(seconds, joules float64) *tilthv1.Measurement {
		return &tilthv1.Measurement{Error: tilthv1.ErrorClass_ERROR_CLASS_NONE, LatencySeconds: seconds, EnergyJoules: joules,
			Interval: &tilthv1.Interval{LowSeconds: seconds / 2, HighSeconds: 2 * seconds, Level: 0.9}}
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }
	x := &task{}
	if m := made(3, 0); x.costed(m) != m || x.watts != 0 {
		t.Error("a measurement without energy is another")
	}
	for _, c := range []struct{ seconds, joules, want float64 }{{2, 10, 2}, {2, 5, 1}, {1, 20, 4}} { // 5 W in the first trial
		m := x.costed(made(c.seconds, c.joules))
		if i := m.GetInterval(); !near(m.GetLatencySeconds(), c.want) || !near(i.GetLowSeconds(), c.want/2) || !near(i.GetHighSeconds(), 2*c.want) || i.GetLevel() != 0.9 {
			t.Errorf("%v s and %v J: %v s, %v; want %v s", c.seconds, c.joules, m.GetLatencySeconds(), i, c.want)
		}
	}
	x.best = 2
	x.confirm(x.costed(made(1, 9)), 1) // the tracker's seconds have no effect
	if !near(x.best, 1.8) {
		t.Errorf("the best is %v, want 1.8", x.best)
	}
	x.confirm(x.costed(made(0.1, 90)), 0.1)
	if !near(x.best, 1.8) {
		t.Errorf("what takes more energy is the best, %v", x.best)
	}
}
