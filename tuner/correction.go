package tuner

import (
	"cmp"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/tuner/transfer"
)

const (
	// fittedTrials is the number of trials that the scales of the process are fitted to.
	fittedTrials = 64
	// failurePenalty is the assumed slowdown of a failed trial against the slowest one, as a base-2 logarithm.
	failurePenalty = 1
	// taskDeviation is the standard deviation of the error in a single task of what the model adds to the analytic
	// cost.
	taskDeviation = 0.5
	// algorithmDeviation and fault are the prior standard deviations of the model's error for an algorithm as a whole
	// and for a single schedule, in base-2 logarithms.
	algorithmDeviation, scheduleDeviation = 0.3, 0.5
)

// correction learns the error of the model from a task's own trials. A Gaussian process predicts that error,
// as a base-2 logarithm, from the knobs, from the algorithm (so that trials of one algorithm say little about
// another), and from the distance between the model and the analytic cost (so that the model's contribution
// fades where it did not help).
type correction struct {
	space   *searchspace.Space
	process *GaussianProcess
	// algorithms lists the algorithms that the space offers.
	algorithms []searchspace.Algorithm
	// gone is the mean distance, over the trials, between the model and the analytic cost.
	gone float64
	// mean is the mean error of the model, as a base-2 logarithm: the model orders the candidates of a task,
	// but does not know their scale. observed is set once a trial has determined it.
	mean     float64
	observed bool
	// fastest is the shortest trial, on the joint scale of the model and the process.
	fastest float64
}

// correction fits a correction to all trials. A failed trial counts as slower than the slowest one.
func (g *learner) correction() correction {
	prospects, logs := g.countedTrials()
	times := g.times(prospects)
	c := correction{space: g.space}
	if all := g.space.Algorithms(); len(all) > 1 {
		c.algorithms = all
	}
	c.observed = len(logs) > 0
	for k, away := range deviations(prospects, times) {
		logs[k] -= times[k]
		c.mean += logs[k] / float64(len(logs))
		c.gone += away / float64(len(logs))
	}
	for k := range logs {
		logs[k] -= c.mean
	}
	if len(g.fastest) > 0 {
		c.fastest = g.fastest[0].log() - c.mean
	}
	trends := append([]float64{taskDeviation * taskDeviation}, slices.Repeat([]float64{algorithmDeviation * algorithmDeviation}, len(c.algorithms))...)
	prior := GaussianPrior{Dimensions: len(g.space.Knobs), Trends: trends, Variance: scheduleDeviation * scheduleDeviation}
	c.process = FitGaussianProcess(prior, c.places(prospects, times), logs, fittedTrials)
	return c
}

// seconds converts a time on the joint scale of the model and the process to seconds. It returns 0 if no
// trial determines the scale.
func (c correction) seconds(time float64) float64 {
	if !c.observed {
		return 0
	}
	return math.Exp2(time+c.mean) / 1e9
}

// countedTrials returns the trials that count, with the base-2 logarithms of their nanoseconds.
func (g *learner) countedTrials() (prospects []*prospect, logs []float64) {
	for _, m := range g.trials {
		prospects, logs = append(prospects, g.prospect(m.point)), append(logs, m.log())
	}
	if len(logs) == 0 {
		return nil, nil
	}
	slowest := slices.Max(logs)
	for _, p := range g.failed {
		if m := g.prospect(p); m != nil {
			prospects, logs = append(prospects, m), append(logs, slowest+failurePenalty)
		}
	}
	return prospects, logs
}

// places returns the coordinates of prospects in the process.
func (c correction) places(list []*prospect, times []float64) [][]float64 {
	places := make([][]float64, len(list))
	for k, away := range deviations(list, times) {
		places[k] = append(slices.Clone(list[k].at), away-c.gone)
		for _, a := range c.algorithms {
			indicator := 0.0
			if c.space.Algorithm(list[k].candidate.Point) == a {
				indicator = 1
			}
			places[k] = append(places[k], indicator)
		}
	}
	return places
}

// deviations returns the distances between times and the analytic cost.
func deviations(list []*prospect, times []float64) []float64 {
	rows := make([]transfer.Row, len(list))
	for k, m := range list {
		rows[k] = m.row
	}
	away := transfer.Costs(rows)
	for k, t := range times {
		away[k] = t - away[k]
	}
	return away
}

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
