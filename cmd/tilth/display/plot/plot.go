package plot

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/tilth-dev/tilth/internal/show"
	"github.com/tilth-dev/tilth/tuning/trials"
)

// Curve is what is drawn. Latencies are in seconds; 0 = not known.
type Curve struct {
	// Title is any text.
	Title  string
	Points trials.Curve
	// Elapsed and Trials are where the curve ends.
	Elapsed time.Duration
	Trials  int
	// Untuned is the latency with default schedules, Limit the least that the machine could take.
	Untuned, Limit float64
}

// Of is the curve of a tally's job.
func Of(title string, t *trials.Tally) Curve {
	return Curve{
		Title: title, Points: t.Curve, Elapsed: t.Elapsed(), Trials: t.Trials(), Untuned: t.UntunedSeconds(), Limit: t.LimitSeconds(),
	}
}

// Sizes in pixels.
const (
	width, height           = 960, 400
	left, right, gap        = 76, 24, 28
	top, bottom             = 64, 52
	panelWidth              = (width - left - right - gap) / 2
	panelTop, panelBottom   = top, height - bottom
	tickSize, labelDistance = 5, 18
)

// Write writes the curve as an SVG document. What can be no latency is passed over.
func Write(w io.Writer, c Curve) error {
	d := &drawing{}
	d.open(c.Title)
	d.text("title", left, 26, "start", c.Title)
	d.text("note", left, 46, "start", c.note())
	latency := c.latencies()
	d.axisY(latency)
	d.panel(left, latency, timeAxis(c.Elapsed), c, func(p trials.Point) float64 { return p.Elapsed.Seconds() })
	d.panel(left+panelWidth+gap, latency, countAxis(c.Trials), c, func(p trials.Point) float64 { return float64(p.Trials) })
	d.close()
	_, err := io.WriteString(w, d.out.String())
	return err
}

// note says in words what came out.
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

// latencies is the axis of all latencies that are drawn.
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

// drawsLimit says whether the limit is near enough to what was reached to be drawn without pressing the curve flat.
// One that is beaten, by rates that were measured too low, says nothing.
func (c Curve) drawsLimit(best float64) bool {
	return drawable(c.Limit) && c.Limit >= best/2 && c.Limit <= best
}

// Between these are all latencies, from less than a cycle of any clock to 30 years.
const shortest, longest = 1e-12, 1e9

// drawable says whether a latency can be drawn.
func drawable(seconds float64) bool { return seconds >= shortest && seconds <= longest }
