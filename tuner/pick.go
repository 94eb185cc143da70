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
	hope = 0.3
	// explored is one in how many picks that is drawn without looking at predictions, once a search is mature.
	explored = 16
)

// pick fills the list up to n with the population's most promising.
func (g *learner) pick(list []Candidate, n int) []Candidate {
	population := g.population()
	if g.options.NoModel {
		return g.cheapest(list, n, population, g.times(population))
	}
	all := slices.Clone(population)
	for _, c := range list {
		all = append(all, g.prospect(c.Point))
	}
	times := g.times(all)
	field := g.correction().field(all, times)
	times = times[:len(population)]
	for k := range list {
		field.Imagine(len(population) + k)
	}
	for k := range times {
		times[k] += field.Mean(k)
	}
	g.ranking.begin()
	for len(list) < n {
		k := g.promising(times, field)
		if k < 0 {
			break
		}
		predicted := times[k]
		times[k] = math.Inf(1)
		if c, ok := g.accept(population[k].candidate); ok {
			list = append(list, c)
			g.ranking.predict(c.Digest, predicted)
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
	if at >= 0 && len(g.trials) >= mature && g.rng.IntN(explored) == 0 {
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
