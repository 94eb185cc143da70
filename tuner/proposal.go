package tuner

import (
	"cmp"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/tuner/transfer"
)

const (
	// optimism is the optimism of an immature search: the number of standard deviations by which a point is
	// assumed to be faster than predicted.
	optimism = 0.3
	// exploreInterval is the interval, in picks, at which a mature search draws a point regardless of predictions.
	exploreInterval = 16
)

// pick extends the list to n candidates with the most promising of the population.
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
	correction := g.correction()
	field := correction.process.Evaluate(correction.places(all, times))
	times = times[:len(population)]
	for k := range list {
		field.Fantasize(len(population) + k)
	}
	for k := range times {
		times[k] += field.Mean(k)
	}
	g.ranking.begin()
	for len(list) < n {
		k := g.promising(times, correction.fastest, field)
		if k < 0 {
			break
		}
		predicted := times[k]
		times[k] = math.Inf(1)
		if c, ok := g.accept(population[k].candidate); ok {
			c.PredictedSeconds = correction.seconds(predicted)
			list = append(list, c)
			g.ranking.predict(c.Digest, predicted)
			field.Fantasize(k)
		}
	}
	return list
}

// cheapest extends the list to n candidates in the order of costs.
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

// promising returns the index of the point with the highest value of a measurement among those with a finite
// time, or -1.
func (g *learner) promising(times []float64, fastest float64, field *GaussianField) int {
	largest, at := math.Inf(-1), -1
	for k, t := range times {
		if math.IsInf(t, 1) {
			continue
		}
		worth := optimism*field.Deviation(k) - t
		if g.mature() {
			worth = gain(fastest-t, field.Deviation(k))
		}
		if worth > largest || worth == largest && t < times[at] {
			largest, at = worth, k
		}
	}
	if at >= 0 && g.mature() && g.rng.IntN(exploreInterval) == 0 {
		if k := g.rng.IntN(len(times)); !math.IsInf(times[k], 1) {
			return k
		}
	}
	return at
}

// gain returns the expected improvement of a normal distribution: Jones, Schonlau and Welch, "Efficient
// Global Optimization of Expensive Black-Box Functions" (1998), equation 15.
func gain(mean, deviation float64) float64 {
	if deviation <= 0 {
		return max(0, mean)
	}
	z := mean / deviation
	return max(0, mean*math.Erfc(-z/math.Sqrt2)/2+deviation*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi))
}

// times returns the model's predictions for prospects.
func (g *learner) times(list []*prospect) []float64 {
	rows := make([]transfer.Row, len(list))
	for k, m := range list {
		rows[k] = m.row
	}
	if g.options.NoModel {
		return transfer.Costs(rows)
	}
	times, costs := g.view.Times(rows), transfer.Costs(rows)
	for k, m := range list {
		if m.own {
			times[k] = costs[k]
		}
	}
	return times
}
