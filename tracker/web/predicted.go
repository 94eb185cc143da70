package web

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/stats"
)

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
	points = thin(slices.DeleteFunc(slices.Clone(points), func(p point) bool { return !drawable(float64(p.predicted)) }))
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
