package stats

import (
	"math"
	"testing"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		name    string
		samples []float64
		want    Summary
	}{
		{"nothing", nil, Summary{}},
		{"one", []float64{3}, Summary{Mean: 3, Median: 3, Min: 3, Max: 3, P90: 3, P99: 3, Count: 1}},
		{"odd", []float64{5, 1, 3}, Summary{Mean: 3, Median: 3, Min: 1, Max: 5, P90: 4.6, P99: 4.96, StdDev: 2, Count: 3}},
		{"even", []float64{4, 1, 2, 5}, Summary{Mean: 3, Median: 3, Min: 1, Max: 5, P90: 4.7, P99: 4.97, StdDev: math.Sqrt(10.0 / 3), Count: 4}},
	} {
		if got := Of(c.samples); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestQuartiles(t *testing.T) {
	for _, c := range []struct {
		name              string
		samples           []float64
		low, median, high float64
	}{
		{"nothing", nil, 0, 0, 0},
		{"one", []float64{3}, 3, 3, 3},
		{"five", []float64{5, 1, 4, 2, 3}, 2, 3, 4},
		{"between samples", []float64{1, 2}, 1.25, 1.5, 1.75},
	} {
		if low, median, high := Quartiles(c.samples); low != c.low || median != c.median || high != c.high {
			t.Errorf("%s: %g %g %g, want %g %g %g", c.name, low, median, high, c.low, c.median, c.high)
		}
	}
}

// TestPartsAddUp disturbs another part in each execution, and one execution as a whole.
func TestPartsAddUp(t *testing.T) {
	var executions [][]float64
	for k := range 9 {
		parts := []float64{1, 2, 3, -1}
		parts[k%3] += 0.5
		executions = append(executions, parts)
	}
	executions[4] = []float64{10, 10, 10, -1}
	got := Parts(executions)
	if sum := got[0] + got[1] + got[2]; math.Abs(sum-6.5) > 1e-9 || got[3] >= 0 {
		t.Errorf("the parts %v add up to %v", got, sum)
	}
	if one := Parts([][]float64{{1, 2}}); len(one) != 2 || one[0] != 1 || one[1] != 2 {
		t.Errorf("one execution has the parts %v", one)
	}
	if Parts(nil) != nil {
		t.Error("no execution has parts")
	}
}
