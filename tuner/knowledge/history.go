package knowledge

import (
	"runtime"
	"slices"
	"sync"

	"github.com/tilth-dev/tilth/compiler/target"
)

// maxRows bounds the measurements that the model of a history is trained on.
const maxRows = 12_000

// History is what was measured before a job began. It is safe for concurrent use.
type History struct {
	target *target.Target
	tasks  []*Task

	once  sync.Once
	model *model
	err   error
}

// NewHistory is the knowledge of tasks for searches on t. Tasks of other targets are a prior that counts less. The order of the
// tasks has a meaning: the same order gives the same searches.
func NewHistory(t *target.Target, tasks []*Task) *History {
	return &History{target: t, tasks: tasks}
}

// learnt is the model of all tasks, trained when it is first asked for; nil when there is nothing to learn from.
func (h *History) learnt() (*model, error) {
	h.once.Do(func() {
		if samples := h.samples(); len(samples) > 0 {
			if h.model, h.err = train(nil, samples, baseParams()); h.err == nil {
				h.model, h.err = h.model.heldBack(baseTrust)
			}
		}
	})
	return h.model, h.err
}

// known are the trials of a workload on the history's own target, fastest first.
func (h *History) known(digest string) []Trial {
	if t := h.own(digest); t != nil {
		return t.reads().ranked
	}
	return nil
}

// samples are those of all tasks, in their order; processors share the tasks.
func (h *History) samples() []sample {
	lists := make([][]sample, len(h.tasks))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(len(h.tasks), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for k := range next {
				lists[k] = h.tasks[k].samples(k, maxRows/len(h.tasks))
			}
		})
	}
	for k := range h.tasks {
		next <- k
	}
	close(next)
	workers.Wait()
	return slices.Concat(lists...)
}

// own is the task of a workload on the history's own target; nil when there is none.
func (h *History) own(digest string) *Task {
	if h == nil {
		return nil
	}
	for _, t := range h.tasks {
		if t.Target.Fingerprint() == h.target.Fingerprint() && t.reads().digest == digest {
			return t
		}
	}
	return nil
}

// samples are at most so many trials of a task, with its number, for training: the faster half of them its best ones, the others spread evenly.
func (t *Task) samples(number, most int) []sample {
	r := t.reads()
	list := r.ranked
	if most = max(most, 2); len(list) > most {
		picked := append([]Trial{}, list[:most/2]...)
		rest := list[most/2:]
		for k := range most - most/2 {
			picked = append(picked, rest[k*len(rest)/(most-most/2)])
		}
		list = picked
	}
	var samples []sample
	for _, trial := range list {
		p, ok := r.space.Parse(trial.Origin)
		if !ok {
			continue
		}
		s, err := r.space.Apply(p)
		if err != nil {
			continue
		}
		samples = append(samples, sample{Describe(r.space, p, s), number, trial.LatencySeconds})
	}
	return samples
}
