package tuner

import (
	"cmp"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/tuner/gauss"
	"github.com/tilth-dev/tilth/tuner/knowledge"
)

const (
	// hope is how many standard deviations a point is believed to be faster than predicted.
	hope = 0.5
	// explored is one in how many picks that is drawn without looking at predictions.
	explored = 16
	// fittedTrials is how many trials the scales of the process are fitted to.
	fittedTrials = 64
	// penalty is by how much, as a logarithm of base 2, a failed trial is taken for slower than the slowest.
	penalty = 1
)

// pick fills the list up to n with the population's most promising.
func (g *learner) pick(list []Candidate, n int) []Candidate {
	population := g.population()
	times := g.times(population)
	if g.options.NoModel {
		return g.cheapest(list, n, population, times)
	}
	places := make([][]float64, 0, len(population)+len(list))
	for _, m := range population {
		places = append(places, m.at)
	}
	for _, c := range list {
		places = append(places, coordinates(g.space, c.Point))
	}
	field := g.process().Over(places)
	for k := range list {
		field.Imagine(len(population) + k)
	}
	for k := range times {
		times[k] += field.Mean(k)
	}
	for len(list) < n {
		k := g.promising(times, field)
		if k < 0 {
			break
		}
		times[k] = math.Inf(1)
		if c, ok := g.accept(population[k].candidate); ok {
			list = append(list, c)
			field.Imagine(k)
		}
	}
	return list
}

// cheapest fills the list up to n in the order of costs.
func (g *learner) cheapest(list []Candidate, n int, population []*prospect, costs []float64) []Candidate {
	order := make([]int, len(population))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(costs[a], costs[b]) })
	for _, k := range order {
		if len(list) >= n {
			break
		}
		if c, ok := g.accept(population[k].candidate); ok {
			list = append(list, c)
		}
	}
	return list
}

// promising is the point that may be fastest, of those whose time is finite; -1 when there is none.
func (g *learner) promising(times []float64, field *gauss.Field) int {
	best, at := math.Inf(1), -1
	for k, t := range times {
		if s := t - hope*field.Deviation(k); s < best {
			best, at = s, k
		}
	}
	if at >= 0 && g.rng.IntN(explored) == 0 {
		if k := g.rng.IntN(len(times)); !math.IsInf(times[k], 1) {
			return k
		}
	}
	return at
}

// times are the model's predictions for prospects.
func (g *learner) times(list []*prospect) []float64 {
	rows := make([]knowledge.Row, len(list))
	for k, m := range list {
		rows[k] = m.row
	}
	if g.options.NoModel {
		return knowledge.Costs(rows)
	}
	return g.view.Times(rows)
}

// process corrects the model by this task's own trials: what it predicts is added to the logarithm of a time.
func (g *learner) process() *gauss.Process {
	var prospects []*prospect
	var logs []float64
	for _, m := range g.trials {
		prospects, logs = append(prospects, g.prospect(m.point)), append(logs, math.Log2(m.latency*1e9))
	}
	if len(logs) > 0 {
		slowest := slices.Max(logs)
		for _, p := range g.failed {
			if m := g.prospect(p); m != nil {
				prospects, logs = append(prospects, m), append(logs, slowest+penalty)
			}
		}
	}
	places, mean := make([][]float64, len(logs)), 0.0
	for k, predicted := range g.times(prospects) {
		places[k] = prospects[k].at
		logs[k] -= predicted
		mean += logs[k] / float64(len(logs))
	}
	for k := range logs {
		logs[k] -= mean
	}
	return gauss.Fit(places, logs, len(g.space.Knobs), fittedTrials)
}
