package transfer

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// maxTrials bounds the trials kept per workload and target. The latest are kept.
const maxTrials = 8192

// Collector builds a history from records.
type Collector struct {
	own     *target.Target
	targets map[string]*target.Target
	groups  map[string]*group
	// watts holds, by target, the power in its first record with an energy.
	watts map[string]float64
	order []*group
}

// group holds the records of one workload on one target.
type group struct {
	target string
	// text is the workload in text form.
	text []byte
	// latest maps the digest of a candidate to the index of its trial.
	latest map[string]int
	trials []Trial
}

// NewCollector collects the measurements of a target and of its siblings: the same machine with other numbers
// of threads, and any similar targets that are given.
func NewCollector(own *target.Target, siblings ...*target.Target) *Collector {
	c := &Collector{own: own, targets: map[string]*target.Target{}, watts: map[string]float64{}, groups: map[string]*group{}}
	for _, t := range siblings {
		if own.Resembles(t) {
			c.targets[t.Fingerprint()] = t
		}
	}
	for _, t := range own.Siblings() {
		c.targets[t.Fingerprint()] = t
	}
	c.targets[own.Fingerprint()] = own
	return c
}

// Add adds a record. Records must come in the order in which they were made, and the first of each workload
// and target must carry the workload. Useless records are ignored.
func (c *Collector) Add(r *tilthv1.Record) {
	m := r.GetMeasurement()
	failed := m.GetError() != tilthv1.ErrorClass_ERROR_CLASS_NONE
	if c.targets[r.GetTarget()] == nil || len(m.GetCandidate().GetOrigin()) == 0 || !failed && !(m.GetLatencySeconds() > 0) {
		return
	}
	key := r.GetTarget() + " " + r.GetWorkloadDigest()
	g := c.groups[key]
	if g == nil {
		g = &group{target: r.GetTarget(), text: r.GetWorkload(), latest: map[string]int{}}
		c.groups[key], c.order = g, append(c.order, g)
	}
	g.add(m.GetCandidate().GetDigest(), Trial{
		Origin: string(m.GetCandidate().GetOrigin()), Digest: m.GetCandidate().GetDigest(), LatencySeconds: c.seconds(r.GetTarget(), m),
	})
}

// seconds returns a measurement on the scale of the search. If the objective is energy, it is the time that
// the energy lasts at the power of the target's first record.
func (c *Collector) seconds(target string, m *tilthv1.Measurement) float64 {
	joules, seconds := m.GetEnergyJoules(), m.GetLatencySeconds()
	if joules == 0 || seconds == 0 {
		return seconds
	}
	if c.watts[target] == 0 {
		c.watts[target] = joules / seconds
	}
	return joules / c.watts[target]
}

// add replaces an earlier trial of the same candidate.
func (g *group) add(digest string, t Trial) {
	if at, again := g.latest[digest]; again {
		g.trials[at] = t
		return
	}
	g.latest[digest] = len(g.trials)
	g.trials = append(g.trials, t)
}

// History returns the collected history, without workloads that cannot be parsed.
func (c *Collector) History() *History {
	var tasks []*Task
	for _, g := range c.order {
		w, err := expr.Parse(string(g.text))
		if err != nil {
			continue
		}
		tasks = append(tasks, &Task{Workload: w, Target: c.targets[g.target], Trials: g.trials[max(0, len(g.trials)-maxTrials):]})
	}
	return NewHistory(c.own, tasks)
}
