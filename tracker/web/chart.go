package web

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// Sizes of charts in SVG units; the style sheet scales them.
const (
	chartWidth, chartHeight         = 560, 220
	marginLeft, marginRight         = 64, 12
	marginTop, marginBottom         = 14, 30
	sparkWidth, sparkHeight         = 96, 20
	maxDrawn                        = 1500
	logarithmicFrom         float64 = 3
)

// scale maps values to positions on an axis.
type scale struct {
	low, high float64
	from, to  float64 // pixels
	log       bool
}

func (s scale) at(v float64) float64 {
	low, high := s.low, s.high
	if s.log {
		v, low, high = math.Log(v), math.Log(low), math.Log(high)
	}
	if high <= low {
		return (s.from + s.to) / 2
	}
	return s.from + (v-low)/(high-low)*(s.to-s.from)
}

// ticks returns the round values on the axis. step returns the next round distance between linear ones.
func (s scale) ticks(step func(least float64) float64) (out []float64) {
	if !s.log {
		each := step((s.high - s.low) / 5)
		for n := math.Ceil(s.low/each-1e-9) + 0; n*each <= s.high+1e-9*each; n++ { // + 0 makes -0 positive
			out = append(out, n*each)
		}
		return out
	}
	digits := []float64{1, 2, 3, 4, 5, 6, 8}
	if ratio := s.high / s.low; ratio > 1000 {
		digits = digits[:1]
	} else if ratio > 10 {
		digits = []float64{1, 2, 5}
	}
	for decade := decadeOf(s.low); decade <= s.high; decade *= 10 {
		for _, digit := range digits {
			if v := digit * decade; v >= s.low && v <= s.high {
				out = append(out, v)
			}
		}
	}
	return out
}

func decadeOf(v float64) float64 { return math.Pow(10, math.Floor(math.Log10(v)+1e-9)) }

// roundStep returns 1, 2 or 5 times a power of ten.
func roundStep(least float64) float64 {
	decade := decadeOf(least)
	for _, digit := range []float64{1, 2, 5} {
		if digit*decade >= least*(1-1e-9) {
			return digit * decade
		}
	}
	return 10 * decade
}

// clockStep is roundStep for seconds on a clock.
func clockStep(least float64) float64 {
	const minute, hour = 60, 3600
	for _, step := range []float64{30, minute, 2 * minute, 5 * minute, 10 * minute, 30 * minute, hour, 3 * hour, 6 * hour, 12 * hour, 24 * hour} {
		if least > 20 && step >= least {
			return step
		}
	}
	return roundStep(least)
}

// latencies returns the vertical axis for latencies, logarithmic if they span a wide range. It includes the machine's
// limit, 0 if unknown, unless that would leave half of the chart empty.
func latencies(low, high, limit float64) scale {
	if drawable(limit) && high/limit <= max(2, high/low*high/low) {
		low, high = min(low, limit), max(high, limit)
	}
	s := scale{low: low, high: high, from: chartHeight - marginBottom, to: marginTop, log: high/low > logarithmicFrom}
	if !s.log {
		room := max((high-low)*0.08, high*0.01)
		s.low, s.high = max(0, low-room), high+room
	}
	return s
}

// drawable reports whether a latency can be drawn.
func drawable(seconds float64) bool { return seconds > 1e-12 && seconds < 1e6 }

// drawing builds an SVG. Colours come from the style sheet, by class.
type drawing struct{ strings.Builder }

// open starts an SVG of a class. label is the text for screen readers.
func (d *drawing) open(class, label string, width, height int) {
	fmt.Fprintf(d, `<svg class="%s" viewBox="0 0 %d %d" role="img" aria-label="%s">`, class, width, height, template.HTMLEscapeString(label))
}

func (d *drawing) done() template.HTML {
	d.WriteString("</svg>")
	return template.HTML(d.String())
}

func (d *drawing) label(class string, x, y float64, anchor, text string) {
	fmt.Fprintf(d, `<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, class, x, y, anchor, template.HTMLEscapeString(text))
}

// axis formats the values of an axis, and returns round distances between them.
type axis struct {
	text func(float64) string
	step func(float64) float64
}

// The axes of charts.
var (
	latencyAxis = axis{axisSeconds, roundStep}
	clockAxis   = axis{spanText, clockStep}
	trialAxis   = axis{
		func(v float64) string { return fmt.Sprintf("%.0f", v) },
		func(least float64) float64 { return max(1, roundStep(least)) },
	}
)

// axisSeconds formats a round latency.
func axisSeconds(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1, " s"}, {1e-3, " ms"}, {1e-6, " µs"}} {
		if v >= unit.size*(1-1e-9) {
			return strconv.FormatFloat(v/unit.size, 'g', 6, 64) + unit.name
		}
	}
	return strconv.FormatFloat(v*1e9, 'g', 6, 64) + " ns"
}

// limit draws the machine's limit; below the chart's range, at its lower edge.
func (d *drawing) limit(y scale, seconds float64) {
	if !drawable(seconds) {
		return
	}
	text, cy := "limit "+humanize.Seconds(seconds), y.from
	if seconds < y.low {
		text += ", below"
	} else {
		cy = y.at(seconds)
	}
	fmt.Fprintf(d, `<path class="limit" d="M%d %.1fH%d"/>`, marginLeft, cy, chartWidth-marginRight)
	d.label("tick limit-text", marginLeft+4, cy-4, "start", text)
}

// grid draws the axes with round values.
func (d *drawing) grid(x, y scale, name string, across, upwards axis) {
	for _, v := range y.ticks(upwards.step) {
		fmt.Fprintf(d, `<path class="grid" d="M%d %.1fH%d"/>`, marginLeft, y.at(v), chartWidth-marginRight)
		d.label("tick", marginLeft-6, y.at(v)+4, "end", upwards.text(v))
	}
	for _, v := range x.ticks(across.step) {
		anchor := "middle"
		if x.at(v) > chartWidth-marginRight-marginBottom {
			anchor = "end" // keep within the chart
		}
		d.label("tick", x.at(v), chartHeight-marginBottom+14, anchor, across.text(v))
	}
	d.label("axis", chartWidth-marginRight, chartHeight-3, "end", name)
}

// Curves returns charts of a model's latency over time and over trials, as SVG elements. They are empty without data.
func Curves(c progress.Curve, limit float64) (byTime, byTrials template.HTML) {
	byTime = curveOf(c, limit, "time", clockAxis, func(p progress.Point) float64 { return p.Elapsed.Seconds() })
	byTrials = curveOf(c, limit, "trials", trialAxis, func(p progress.Point) float64 { return float64(p.Trials) })
	return byTime, byTrials
}

// curveOf plots a model's latency over time or trials from the first value on; empty without data.
func curveOf(c progress.Curve, limit float64, name string, across axis, at func(progress.Point) float64) template.HTML {
	c = thin(slices.DeleteFunc(slices.Clone(c), func(p progress.Point) bool { return !drawable(p.Seconds) }), maxDrawn)
	if len(c) == 0 {
		return ""
	}
	low, high := c[0].Seconds, c[0].Seconds
	for _, p := range c {
		low, high = min(low, p.Seconds), max(high, p.Seconds)
	}
	x := scale{low: at(c[0]), high: max(at(c[len(c)-1]), at(c[0])+1), from: marginLeft, to: chartWidth - marginRight}
	y := latencies(low, high, limit)
	d := &drawing{}
	d.open("chart", "Latency of the model over "+name, chartWidth, chartHeight)
	d.grid(x, y, name, across, latencyAxis)
	d.limit(y, limit)
	d.WriteString(`<path class="curve" d="`)
	for i, p := range c {
		if i == 0 {
			fmt.Fprintf(d, "M%.1f %.1f", x.at(at(p)), y.at(p.Seconds))
			continue
		}
		fmt.Fprintf(d, "H%.1fV%.1f", x.at(at(p)), y.at(p.Seconds))
	}
	fmt.Fprintf(d, `H%d"/>`, chartWidth-marginRight)
	for _, p := range c {
		fmt.Fprintf(d, `<circle class="dot" cx="%.1f" cy="%.1f" r="2.5"><title>%s after %s, %d trials</title></circle>`,
			x.at(at(p)), y.at(p.Seconds), humanize.Seconds(p.Seconds), humanize.Clock(p.Elapsed), p.Trials)
	}
	return d.done()
}

// spanText formats seconds for an axis.
func spanText(seconds float64) string {
	switch {
	case seconds < 120:
		return fmt.Sprintf("%.4g s", seconds)
	case seconds < 7200:
		return fmt.Sprintf("%.3g min", seconds/60)
	}
	return fmt.Sprintf("%.3g h", seconds/3600)
}

// thin drops elements until at most limit are left.
func thin[T any](all []T, limit int) []T {
	for len(all) > limit {
		all = everyOther(all)
	}
	return all
}

// scatter plots the latencies of a task's trials by algorithm, and the machine's limit. Failures appear at the top.
func scatter(points []point, limit float64) template.HTML {
	algorithms := algorithmsOf(points)
	points = thin(points, maxDrawn)
	low, high, last := math.Inf(1), 0.0, 1.0
	for _, p := range points {
		last = max(last, float64(p.trial))
		if drawable(p.latency) {
			low, high = min(low, p.latency), max(high, p.latency)
		}
	}
	if high == 0 {
		return ""
	}
	x := scale{low: 0, high: last, from: marginLeft, to: chartWidth - marginRight}
	y := latencies(low, high, limit)
	d := &drawing{}
	d.open("chart", "Latency of trials", chartWidth, chartHeight)
	d.grid(x, y, "trial", trialAxis, latencyAxis)
	d.limit(y, limit)
	for _, p := range points {
		d.trial(p, algorithms, x.at(float64(p.trial)), y)
	}
	return d.done() + legend(algorithms)
}

// trial draws a trial in its algorithm's colour at its latency. A failed trial appears at the top.
func (d *drawing) trial(p point, algorithms []string, cx float64, y scale) {
	class, text, cy := "failed", "failed: "+wire.ErrorClass(p.class), float64(marginTop)-7
	if drawable(p.latency) {
		class = fmt.Sprintf("dot a%d", slices.Index(algorithms, p.algorithm)%4)
		text, cy = humanize.Seconds(p.latency), y.at(p.latency)
	}
	if p.predicted > 0 {
		text += ", predicted " + humanize.Seconds(float64(p.predicted))
	}
	fmt.Fprintf(d, `<circle class="%s" cx="%.1f" cy="%.1f" r="3"><title>%s</title></circle>`, class, cx, cy,
		template.HTMLEscapeString(fmt.Sprintf("trial %d: %s; %s; schedule %s; on %s", p.trial, text, p.algorithm, p.digest, p.device)))
}

// legend explains the colours of the algorithms.
func legend(algorithms []string) template.HTML {
	d := &drawing{}
	d.WriteString(`<p class="legend">`)
	for i, name := range algorithms[:min(len(algorithms), 4)] {
		fmt.Fprintf(d, `<span><svg class="key" viewBox="0 0 8 8"><circle class="dot a%d" cx="4" cy="4" r="3"/></svg>%s</span> `, i, template.HTMLEscapeString(name))
	}
	d.WriteString("</p>")
	return template.HTML(d.String())
}

// algorithmsOf returns the algorithms of trials, sorted.
func algorithmsOf(points []point) []string {
	names := map[string]bool{}
	for _, p := range points {
		names[p.algorithm] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// sparkline plots the progress of a best; empty for fewer than two values.
func sparkline(values []float64) template.HTML {
	values = thin(slices.DeleteFunc(values, func(v float64) bool { return !drawable(v) }), sparkWidth)
	if len(values) < 2 {
		return ""
	}
	x := scale{low: 0, high: float64(len(values) - 1), from: 1, to: sparkWidth - 1}
	y := scale{low: slices.Min(values), high: slices.Max(values), from: sparkHeight - 2, to: 2}
	d := &drawing{}
	d.open("spark", "How the best came down", sparkWidth, sparkHeight)
	fmt.Fprintf(d, `<path class="curve" d="M%.1f %.1f`, x.at(0), y.at(values[0]))
	for i, v := range values[1:] {
		fmt.Fprintf(d, "H%.1fV%.1f", x.at(float64(i+1)), y.at(v))
	}
	d.WriteString(`"/>`)
	return d.done()
}

// driftOf plots a device's slowdown relative to its reference; empty for fewer than two calibrations.
func driftOf(c *tilthv1.CalibrationCourse) template.HTML {
	var percent []float64
	for _, v := range c.GetDrift() {
		percent = append(percent, 100*float64(v))
	}
	return courseOf("Drift over time", c.GetAtSeconds(), percent, 1, "%.1f %%")
}

// heatOf plots a device's highest temperature; empty without sensors.
func heatOf(c *tilthv1.CalibrationCourse) template.HTML {
	var at []int64
	var celsius []float64
	for i, v := range c.GetCelsius() {
		if v != 0 && i < len(c.GetAtSeconds()) {
			at, celsius = append(at, c.GetAtSeconds()[i]), append(celsius, float64(v))
		}
	}
	return courseOf("Temperature over time", at, celsius, 5, "%.0f °C")
}

// courseOf plots values over time. room is the margin of the vertical axis, in the values' unit.
func courseOf(label string, at []int64, values []float64, room float64, format string) template.HTML {
	if len(at) < 2 || len(at) != len(values) {
		return ""
	}
	text := func(v float64) string { return fmt.Sprintf(format, v) }
	first, last := at[0], at[len(at)-1]
	x := scale{low: -max(1, float64(last-first)), high: 0, from: marginLeft, to: chartWidth - marginRight}
	y := scale{low: slices.Min(values) - room, high: slices.Max(values) + room, from: chartHeight - marginBottom, to: marginTop}
	d := &drawing{}
	d.open("chart", label, chartWidth, chartHeight)
	d.grid(x, y, "before the last", axis{func(v float64) string { return spanText(math.Abs(v)) }, clockStep}, axis{text, roundStep})
	d.WriteString(`<path class="curve" d="`)
	for i, v := range values {
		fmt.Fprintf(d, "%c%.1f %.1f", "ML"[min(i, 1)], x.at(float64(at[i]-last)), y.at(v))
	}
	d.WriteString(`"/>`)
	for i, v := range values {
		fmt.Fprintf(d, `<circle class="dot" cx="%.1f" cy="%.1f" r="2.5"><title>%s at %s UTC</title></circle>`,
			x.at(float64(at[i]-last)), y.at(v), text(v), time.Unix(at[i], 0).UTC().Format("2006-01-02 15:04"))
	}
	return d.done()
}

const (
	// minRanked is the number of trials from which a rank correlation is meaningful.
	minRanked = 5
	// fastestShown bounds the fastest trials that are compared with their predictions.
	fastestShown = 20
)

// predictions compares a search's predictions with measurements. The zero value is empty.
type predictions struct {
	// All covers all trials with prediction and measurement; ByAlgorithm splits them by algorithm.
	All         accuracy
	ByAlgorithm []accuracy
	// Fastest are the fastest trials.
	Fastest []prediction
	Chart   template.HTML
}

// accuracy is the quality of predictions.
type accuracy struct {
	Algorithm string
	Trials    int
	// Correlation is Spearman's rank correlation; valid for minRanked trials or more.
	Correlation float64
	// Off is the factor, at least 1, within which half of the predictions lie.
	Off float64
}

// Rank formats the correlation.
func (a accuracy) Rank() string {
	if a.Trials < minRanked {
		return humanize.Missing
	}
	return fmt.Sprintf("%.2f", a.Correlation)
}

// Within formats Off.
func (a accuracy) Within() string { return fmt.Sprintf("%.2fx", a.Off) }

// prediction is a trial with prediction and measurement. Place is the rank of its prediction, from 1.
type prediction struct {
	Trial               uint32
	Algorithm           string
	Predicted, Measured float64 // seconds
	Place               int
}

// predictionsOf compares the predictions of a task's trials with their latencies.
func predictionsOf(points []point) (out predictions) {
	known := slices.DeleteFunc(slices.Clone(points), func(p point) bool {
		return !drawable(float64(p.predicted)) || !drawable(p.latency)
	})
	if len(known) == 0 {
		return out
	}
	out.All = accuracyOf(known)
	for _, name := range algorithmsOf(known) {
		one := accuracyOf(slices.DeleteFunc(slices.Clone(known), func(p point) bool { return p.algorithm != name }))
		one.Algorithm = name
		out.ByAlgorithm = append(out.ByAlgorithm, one)
	}
	slices.SortStableFunc(known, func(a, b point) int { return cmp.Compare(a.predicted, b.predicted) })
	for i, p := range known {
		out.Fastest = append(out.Fastest, prediction{p.trial, p.algorithm, float64(p.predicted), p.latency, i + 1})
	}
	slices.SortStableFunc(out.Fastest, func(a, b prediction) int { return cmp.Compare(a.Measured, b.Measured) })
	out.Fastest = out.Fastest[:min(len(out.Fastest), fastestShown)]
	out.Chart = predictedOf(points)
	return out
}

// accuracyOf summarizes trials that all have prediction and measurement. known must not be empty.
func accuracyOf(known []point) accuracy {
	predicted, measured, off := make([]float64, len(known)), make([]float64, len(known)), make([]float64, len(known))
	for i, p := range known {
		predicted[i], measured[i] = float64(p.predicted), p.latency
		off[i] = max(predicted[i]/measured[i], measured[i]/predicted[i])
	}
	return accuracy{Trials: len(known), Correlation: stats.Spearman(predicted, measured), Off: stats.Of(off).Median}
}

// predictedOf plots measured over predicted latencies, with equal axes and the colours of scatter. Failures appear at
// the top; the line marks equality.
func predictedOf(points []point) template.HTML {
	algorithms := algorithmsOf(points)
	points = thin(slices.DeleteFunc(slices.Clone(points), func(p point) bool { return !drawable(float64(p.predicted)) }), maxDrawn)
	low, high := math.Inf(1), 0.0
	for _, p := range points {
		low, high = min(low, float64(p.predicted)), max(high, float64(p.predicted))
		if drawable(p.latency) {
			low, high = min(low, p.latency), max(high, p.latency)
		}
	}
	y := latencies(low, high, 0)
	x := y
	x.from, x.to = marginLeft, chartWidth-marginRight
	d := &drawing{}
	d.open("chart", "Measured latency over predicted latency", chartWidth, chartHeight)
	d.grid(x, y, "predicted", latencyAxis, latencyAxis)
	fmt.Fprintf(d, `<path class="equal" d="M%.1f %.1fL%.1f %.1f"/>`, x.at(x.low), y.at(y.low), x.at(x.high), y.at(y.high))
	for _, p := range points {
		d.trial(p, algorithms, x.at(float64(p.predicted)), y)
	}
	return d.done()
}
