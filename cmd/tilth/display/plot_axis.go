package display

import (
	"math"
	"strconv"
	"time"
)

// axis maps values to labels and positions between 0 and 1.
type axis struct {
	name      string
	low, high float64
	// unit is the value of one label unit.
	unit  float64
	ticks []float64
	step  float64
}

// at returns the position of a value, clamped to the axis.
func (a axis) at(v float64) float64 {
	return min(max((v-a.low)/(a.high-a.low), 0), 1)
}

// label formats a tick in the axis' unit, with as many decimals as the step has.
func (a axis) label(tick float64) string {
	decimals := max(0, -int(math.Floor(math.Log10(a.step/a.unit)+1e-9)))
	return strconv.FormatFloat(tick/a.unit, 'f', decimals, 64)
}

// maxTicks is the maximum number of ticks.
const maxTicks = 6

// newAxis returns an axis with round ticks in its unit. With widen, both ends are ticks.
func newAxis(name string, unit, low, high float64, widen bool) axis {
	a := axis{name: name, low: low, high: high, unit: unit}
	a.step = roundStep((high-low)/unit/maxTicks) * unit
	first, last := math.Ceil(low/a.step-1e-9), math.Floor(high/a.step+1e-9)
	if widen {
		first, last = math.Floor(low/a.step+1e-9), math.Ceil(high/a.step-1e-9)
		a.low, a.high = first*a.step, last*a.step
	}
	for k := range int(last-first) + 1 {
		a.ticks = append(a.ticks, (first+float64(k))*a.step)
	}
	return a
}

// roundStep returns the smallest of 1, 2 and 5 times a power of ten that is not below floor.
func roundStep(floor float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(floor)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= floor*(1-1e-9) {
			return factor * power
		}
	}
	return 10 * power
}

// latencyAxis covers latencies in seconds, with a margin.
func latencyAxis(low, high float64) axis {
	if !(low <= high) || !drawable(low) {
		low, high = 0, 1e-3
	}
	if high-low < 0.02*high { // do not exaggerate a flat curve
		low, high = 0.99*low, 1.01*high
	}
	units := []struct {
		name    string
		seconds float64
	}{{"ns", 1e-9}, {"µs", 1e-6}, {"ms", 1e-3}, {"s", 1}}
	chosen := units[0]
	for _, u := range units {
		if high >= u.seconds {
			chosen = u
		}
	}
	return newAxis("latency ("+chosen.name+")", chosen.seconds, low, high, true)
}

// timeAxis covers 0 to a duration, in seconds.
func timeAxis(end time.Duration) axis {
	seconds := max(end.Seconds(), 1)
	name, unit := "time (s)", 1.0
	switch {
	case seconds >= 3*3600:
		name, unit = "time (h)", 3600
	case seconds >= 180:
		name, unit = "time (min)", 60
	}
	return newAxis(name, unit, 0, seconds, false)
}

// countAxis covers 0 to a number of trials.
func countAxis(n int) axis {
	a := newAxis("trials", 1, 0, float64(max(n, 1)), false)
	if a.step >= 1 {
		return a
	}
	a.step, a.ticks = 1, nil
	for k := range max(n, 1) + 1 {
		a.ticks = append(a.ticks, float64(k))
	}
	return a
}
