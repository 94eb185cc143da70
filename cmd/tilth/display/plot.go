// This file draws the latency of a job over time and over trials as an SVG chart.

package display

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/tilth-dev/tilth/internal/show"
	"github.com/tilth-dev/tilth/tuner/trials"
)

// Curve is the data of a plot. Latencies are in seconds; 0 means unknown.
type Curve struct {
	// Title may be any text.
	Title  string
	Points trials.Curve
	// Elapsed and Trials are the end of the curve.
	Elapsed time.Duration
	Trials  int
	// Untuned is the latency with default schedules, and Limit the machine's lower bound.
	Untuned, Limit float64
}

// CurveOf returns the curve of a tally's job.
func CurveOf(title string, t *trials.Tally) Curve {
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
	d.panel(left, latency, timeAxis(c.Elapsed), c, func(p trials.Point) float64 { return p.Elapsed.Seconds() })
	d.panel(left+panelWidth+plotGap, latency, countAxis(c.Trials), c, func(p trials.Point) float64 { return float64(p.Trials) })
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
	text := fmt.Sprintf("%s after %s and %d trials", show.Seconds(best), show.Clock(c.Elapsed), c.Trials)
	if c.Untuned > 0 {
		text += fmt.Sprintf("; untuned %s, %s", show.Seconds(c.Untuned), show.Ratio(c.Untuned, best))
	}
	if c.Limit > 0 {
		text += fmt.Sprintf("; the machine's limit for direct sums is %s", show.Seconds(c.Limit))
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
