package transfer

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/costmodel"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// maxRows bounds the measurements that the model of a history is trained on.
const maxRows = 12_000

// History holds the measurements made before a job started. It is safe for concurrent use.
type History struct {
	target *target.Target
	tasks  []*Task

	models Models

	once  sync.Once
	model *costmodel.Model
	err   error
}

// NewHistory returns the knowledge of tasks for searches on t. Tasks of other targets serve as a prior with a
// lower weight. Searches depend on the order of the tasks.
func NewHistory(t *target.Target, tasks []*Task) *History {
	return &History{target: t, tasks: tasks}
}

// Trials returns the successful trials of a workload on the history's own target, fastest first.
func (h *History) Trials(digest string) []Trial {
	if t := h.own(digest); t != nil {
		return t.derive().ranked
	}
	return nil
}

// formerTrials returns the successful trials of a workload on the target that differs from the history's own by its
// compiler alone, fastest first. Of several such targets it takes the one with the fastest trial.
func (h *History) formerTrials(digest string) (former []Trial) {
	if h == nil {
		return nil
	}
	for _, t := range h.tasks {
		own, r := t.Target.Fingerprint() == h.target.Fingerprint(), t.derive()
		if own || len(r.ranked) == 0 || r.digest != digest || t.Target.WithToolchain(h.target.Toolchain).Fingerprint() != h.target.Fingerprint() {
			continue
		}
		if former == nil || r.ranked[0].LatencySeconds < former[0].LatencySeconds {
			former = r.ranked
		}
	}
	return former
}

// samples returns the samples of all tasks, in order. It works on several tasks in parallel.
func (h *History) samples() []costmodel.Sample {
	lists := make([][]costmodel.Sample, len(h.tasks))
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for k, t := range h.tasks {
		all.Go(func() error {
			lists[k] = t.samples(taskName(k), maxRows/len(h.tasks))
			return nil
		})
	}
	_ = all.Wait() // no task fails
	return slices.Concat(lists...)
}

// own returns the task of a workload on the history's own target, or nil.
func (h *History) own(digest string) *Task {
	if h == nil {
		return nil
	}
	for _, t := range h.tasks {
		if t.Target.Fingerprint() == h.target.Fingerprint() && t.derive().digest == digest {
			return t
		}
	}
	return nil
}

// taskName returns a name that sorts like the task's number.
func taskName(number int) string { return fmt.Sprintf("%08d", number) }

// samples returns at most the given number of trials as training samples under a task name: half of them the
// fastest, the others spread evenly.
func (t *Task) samples(name string, limit int) []costmodel.Sample {
	r := t.derive()
	list := r.ranked
	if limit = max(limit, 2); len(list) > limit {
		picked := append([]Trial{}, list[:limit/2]...)
		rest := list[limit/2:]
		for k := range limit - limit/2 {
			picked = append(picked, rest[k*len(rest)/(limit-limit/2)])
		}
		list = picked
	}
	var samples []costmodel.Sample
	for _, trial := range list {
		if row := t.describes(trial); row.Whole() {
			samples = append(samples, costmodel.Sample{Features: row, Task: name, LatencySeconds: trial.LatencySeconds})
		}
	}
	return samples
}

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
		if own.SameArchitecture(t) {
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
