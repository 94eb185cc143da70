// This file draws the latency of a job over time and over trials as an SVG chart.

package display

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// Curve is the data of a plot. Latencies are in seconds; 0 means unknown.
type Curve struct {
	// Title may be any text.
	Title  string
	Points progress.Curve
	// Elapsed and Trials are the end of the curve.
	Elapsed time.Duration
	Trials  int
	// Untuned is the latency with default schedules, and Limit the machine's lower bound.
	Untuned, Limit float64
}

// CurveOf returns the curve of a tally's job.
func CurveOf(title string, t *progress.Tally) Curve {
	return Curve{
		Title: title, Points: t.Curve, Elapsed: t.Elapsed(), Trials: t.Trials(), Untuned: t.UntunedSeconds(), Limit: t.LimitSeconds(),
	}
}

// Sizes in pixels.
const (
	width, height           = 960, 400
	left, right, plotGap    = 76, 24, 28
	top, bottom             = 64, 52
	panelWidth              = (width - left - right - plotGap) / 2
	panelTop, panelBottom   = top, height - bottom
	tickSize, labelDistance = 5, 18
)

// WriteCurve writes the curve as an SVG document. It skips impossible latencies.
func WriteCurve(w io.Writer, c Curve) error {
	d := &drawing{}
	d.open(c.Title)
	d.text("title", left, 26, "start", c.Title)
	d.text("note", left, 46, "start", c.note())
	latency := c.latencies()
	d.axisY(latency)
	d.panel(left, latency, timeAxis(c.Elapsed), c, func(p progress.Point) float64 { return p.Elapsed.Seconds() })
	d.panel(left+panelWidth+plotGap, latency, countAxis(c.Trials), c, func(p progress.Point) float64 { return float64(p.Trials) })
	d.close()
	_, err := io.WriteString(w, d.out.String())
	return err
}

// note summarises the result in words.
func (c Curve) note() string {
	if len(c.Points) == 0 {
		return "no latency: some tasks have no verified candidate yet"
	}
	best := c.Points[len(c.Points)-1].Seconds
	text := fmt.Sprintf("%s after %s and %d trials", humanize.Seconds(best), humanize.Clock(c.Elapsed), c.Trials)
	if c.Untuned > 0 {
		text += fmt.Sprintf("; untuned %s, %s", humanize.Seconds(c.Untuned), humanize.Ratio(c.Untuned, best))
	}
	if c.Limit > 0 {
		text += fmt.Sprintf("; the machine's limit for direct sums is %s", humanize.Seconds(c.Limit))
	}
	return text
}

// latencies returns the axis of all drawn latencies.
func (c Curve) latencies() axis {
	low, high := math.Inf(1), 0.0
	for _, p := range c.Points {
		if drawable(p.Seconds) {
			low, high = min(low, p.Seconds), max(high, p.Seconds)
		}
	}
	if drawable(c.Untuned) {
		low, high = min(low, c.Untuned), max(high, c.Untuned)
	}
	if c.drawsLimit(low) {
		low = min(low, c.Limit)
	}
	return latencyAxis(low, high)
}

// drawsLimit reports whether the limit is close enough to the result to be drawn without flattening the
// curve. A beaten limit, due to underestimated rates, is not drawn.
func (c Curve) drawsLimit(best float64) bool {
	return drawable(c.Limit) && c.Limit >= best/2 && c.Limit <= best
}

// Bounds of plausible latencies: less than a clock cycle, and 30 years.
const shortest, longest = 1e-12, 1e9

// drawable reports whether a latency is plausible.
func drawable(seconds float64) bool { return seconds >= shortest && seconds <= longest }

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
