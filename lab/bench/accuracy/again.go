package accuracy

import (
	"context"
	"fmt"
	"math"
)

// Again ranks candidates by a second measurement of them. Its errors are measurement noise, the bound for any model.
type Again struct{ Tasks []Task }

// Name returns the ranker's name.
func (Again) Name() string { return "measured again" }

// Rank looks up the candidates.
func (a Again) Rank(_ context.Context, _, test []Task) ([][]float64, error) {
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
func Common(tasks, again []Task) []Task {
	known := byDigest(again)
	var list []Task
	for _, t := range tasks {
		latencies := known[t.digest()]
		own := Task{Name: t.Name, Shape: t.Shape}
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
func byDigest(tasks []Task) map[string]map[string]float64 {
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
