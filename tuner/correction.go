package tuner

import (
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
