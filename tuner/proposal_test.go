package tuner

import (
	"math"
	"testing"
)

func TestExpectedImprovement(t *testing.T) {
	for _, c := range []struct {
		name                  string
		mean, deviation, want float64
	}{
		{"certain and faster", 0.1, 0, 0.1},
		{"certain and slower", -0.1, 0, 0},
		{"as fast, and uncertain", 0, 1, 1 / math.Sqrt(2*math.Pi)},
		{"a deviation slower", -0.1, 0.1, 0.1 * 0.0833155},
		{"a deviation faster", 0.1, 0.1, 0.1 * 1.0833155},
		{"worse", -1, 0.01, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := gain(c.mean, c.deviation); math.Abs(got-c.want) > 1e-7 || got < 0 {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	if plateau, unknown := gain(0, 0.005), gain(-0.1, 0.1); plateau >= unknown {
		t.Errorf("%v where all is known to be alike, %v where much is open", plateau, unknown)
	}
}
