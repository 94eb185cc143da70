package tuner

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/tuner/gauss"
	"github.com/tilth-dev/tilth/tuner/knowledge"
)

const (
	// fittedTrials is how many trials the scales of the process are fitted to.
	fittedTrials = 64
	// penalty is by how much, as a logarithm of base 2, a failed trial is taken for slower than the slowest.
	penalty = 1
	// doubt is the standard deviation of the part of what the model says beside the analytic cost that is wrong about
	// one task.
	doubt = 0.5
	// partiality is by how much the model is wrong about an algorithm as a whole, and fault about a schedule: standard
	// deviations of logarithms, base 2, before any trial.
	partiality, fault = 0.3, 0.5
)

// correction is what a task's own trials teach beside the model: a process that predicts by how much, as a logarithm
// of base 2, the model is wrong. It depends on the knobs; on the algorithm, so that trials of one say little about the
// others; and on how far the model goes away from the analytic cost: where that was in vain, it fades.
type correction struct {
	space   *space.Space
	process *gauss.Process
	// algorithms are those among which the space chooses.
	algorithms []space.Algorithm
	// gone is the mean, over the trials, of how far the model goes away from the analytic cost.
	gone float64
	// mean is by how much trials take longer than the model says, as a logarithm of base 2: the model knows the order
	// of a task's candidates, not their scale. observed says that there are trials to tell it.
	mean     float64
	observed bool
	// fastest is the least time of a trial, on the scale of what the model and the process together predict.
	fastest float64
}

// correction learns from all trials; a failed one counts as slower than the slowest.
func (g *learner) correction() correction {
	prospects, logs := g.lessons()
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
	trends := append([]float64{doubt * doubt}, slices.Repeat([]float64{partiality * partiality}, len(c.algorithms))...)
	prior := gauss.Prior{Dimensions: len(g.space.Knobs), Trends: trends, Variance: fault * fault}
	c.process = gauss.Fit(prior, c.places(prospects, times), logs, fittedTrials)
	return c
}

// seconds are those that a time means on the scale of what the model and the process together predict; 0 where no
// trial tells the scale.
func (c correction) seconds(time float64) float64 {
	if !c.observed {
		return 0
	}
	return math.Exp2(time+c.mean) / 1e9
}

// lessons are the trials that count, with the logarithms, base 2, of their nanoseconds.
func (g *learner) lessons() (prospects []*prospect, logs []float64) {
	for _, m := range g.trials {
		prospects, logs = append(prospects, g.prospect(m.point)), append(logs, m.log())
	}
	if len(logs) == 0 {
		return nil, nil
	}
	slowest := slices.Max(logs)
	for _, p := range g.failed {
		if m := g.prospect(p); m != nil {
			prospects, logs = append(prospects, m), append(logs, slowest+penalty)
		}
	}
	return prospects, logs
}

// field is the correction at prospects for which the model predicts times.
func (c correction) field(list []*prospect, times []float64) *gauss.Field {
	return c.process.Over(c.places(list, times))
}

// places are the coordinates that the process knows prospects by.
func (c correction) places(list []*prospect, times []float64) [][]float64 {
	places := make([][]float64, len(list))
	for k, away := range deviations(list, times) {
		places[k] = append(slices.Clone(list[k].at), away-c.gone)
		for _, a := range c.algorithms {
			places[k] = append(places[k], indicator(c.space.Algorithm(list[k].candidate.Point) == a))
		}
	}
	return places
}

// indicator is 1 for true.
func indicator(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

// deviations are how far times are from what the analytic cost says.
func deviations(list []*prospect, times []float64) []float64 {
	rows := make([]knowledge.Row, len(list))
	for k, m := range list {
		rows[k] = m.row
	}
	away := knowledge.Costs(rows)
	for k, t := range times {
		away[k] = t - away[k]
	}
	return away
}
