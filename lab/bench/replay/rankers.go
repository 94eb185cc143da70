package replay

import (
	"context"
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/costmodel"
)

// Ranker is a method of ranking candidates.
type Ranker interface {
	// Name returns a short name for tables.
	Name() string
	// Rank trains on some tasks and scores the candidates of others. Scores are base-2 logarithms of throughputs, up
	// to a constant per task.
	Rank(ctx context.Context, train, test []MeasuredTask) ([][]float64, error)
}

// Learnt is the project's own model.
type Learnt struct {
	Label   string
	Options costmodel.Options
}

// Name returns the label.
func (l Learnt) Name() string { return l.Label }

// Rank trains a model.
func (l Learnt) Rank(ctx context.Context, train, test []MeasuredTask) ([][]float64, error) {
	m, err := costmodel.Train(ctx, nil, Samples(train), l.Options)
	if err != nil {
		return nil, err
	}
	return speeds(m, test)
}

// Samples returns the samples of all tasks.
func Samples(tasks []MeasuredTask) (list []costmodel.Sample) {
	for _, t := range tasks {
		list = append(list, t.Samples...)
	}
	return list
}

// Analytic is the analytic cost of the space. It does not train.
type Analytic struct{}

// Name returns the ranker's name.
func (Analytic) Name() string { return "analytic" }

// Rank ranks fewer cycles first.
func (Analytic) Rank(_ context.Context, _, test []MeasuredTask) ([][]float64, error) {
	return speeds(nil, test)
}

// speeds returns a model's predictions for the candidates of tasks.
func speeds(m *costmodel.Model, tasks []MeasuredTask) ([][]float64, error) {
	scores := make([][]float64, len(tasks))
	for k := range tasks {
		times, err := m.Times(tasks[k].rows())
		if err != nil {
			return nil, err
		}
		for _, t := range times {
			scores[k] = append(scores[k], -t)
		}
	}
	return scores, nil
}

// Again ranks candidates by a second measurement of them. Its errors are measurement noise, the bound for any model.
type Again struct{ Tasks []MeasuredTask }

// Name returns the ranker's name.
func (Again) Name() string { return "measured again" }

// Rank looks up the candidates.
func (a Again) Rank(_ context.Context, _, test []MeasuredTask) ([][]float64, error) {
	known := byDigest(a.Tasks)
	scores := make([][]float64, len(test))
	for k := range test {
		latencies := known[test[k].digest()]
		for _, origin := range test[k].Origins {
			seconds, ok := latencies[origin]
			if !ok {
				return nil, fmt.Errorf("%s: candidate %q was not measured again", test[k].Name, origin)
			}
			scores[k] = append(scores[k], -math.Log2(seconds))
		}
	}
	return scores, nil
}

// Common returns the candidates that succeeded in both measurements.
func Common(tasks, again []MeasuredTask) []MeasuredTask {
	known := byDigest(again)
	var list []MeasuredTask
	for _, t := range tasks {
		latencies := known[t.digest()]
		own := MeasuredTask{Name: t.Name, Shape: t.Shape}
		for k, origin := range t.Origins {
			if _, ok := latencies[origin]; ok && t.Samples[k].LatencySeconds > 0 {
				own.Samples, own.Intervals, own.Origins = append(own.Samples, t.Samples[k]), append(own.Intervals, t.Intervals[k]), append(own.Origins, origin)
			}
		}
		if len(own.Samples) > 0 {
			list = append(list, own)
		}
	}
	return list
}

// byDigest returns the latencies of successful candidates by workload and origin.
func byDigest(tasks []MeasuredTask) map[string]map[string]float64 {
	known := map[string]map[string]float64{}
	for _, t := range tasks {
		latencies := map[string]float64{}
		for k, s := range t.Samples {
			if s.LatencySeconds > 0 {
				latencies[t.Origins[k]] = s.LatencySeconds
			}
		}
		known[t.digest()] = latencies
	}
	return known
}
