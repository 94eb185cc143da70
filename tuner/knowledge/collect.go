package knowledge

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// maxTrials bounds what is kept of one workload on one target: the latest.
const maxTrials = 8192

// Collector makes a history of records.
type Collector struct {
	own     *target.Target
	targets map[string]*target.Target
	groups  map[string]*group
	// watts are those of the first record of each target whose energy was measured.
	watts map[string]float64
	order []*group
}

// group is the records of one workload on one target.
type group struct {
	target string
	// text is the workload's.
	text []byte
	// latest has, by the candidate's digest, where its trial is.
	latest map[string]int
	trials []Trial
}

// NewCollector collects what was measured on a target and on its siblings: the same machine with other numbers of
// threads, and whatever others are named that resemble it.
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

// Add adds a record, after those made before it. The first of each workload and target must carry the workload; what
// is of no use is left out.
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

// seconds is what a search is told of a measurement: where the objective is energy, the time that its energy lasts at
// the power of the target's first.
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

// add takes the last word on each candidate.
func (g *group) add(digest string, t Trial) {
	if at, again := g.latest[digest]; again {
		g.trials[at] = t
		return
	}
	g.latest[digest] = len(g.trials)
	g.trials = append(g.trials, t)
}

// History is what was collected; workloads that cannot be read are left out.
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
