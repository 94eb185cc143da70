package knowledge

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/costmodel"
)

// maxRows bounds the measurements that the model of a history is trained on.
const maxRows = 12_000

// History is what was measured before a job began. It is safe for concurrent use.
type History struct {
	target *target.Target
	tasks  []*Task

	models Models

	once  sync.Once
	model *costmodel.Model
	err   error
}

// NewHistory is the knowledge of tasks for searches on t. Tasks of other targets are a prior that counts less. The
// order of the tasks has a meaning: the same order gives the same searches.
func NewHistory(t *target.Target, tasks []*Task) *History {
	return &History{target: t, tasks: tasks}
}

// known are the trials of a workload on the history's own target, fastest first.
func (h *History) known(digest string) []Trial {
	if t := h.own(digest); t != nil {
		return t.reads().ranked
	}
	return nil
}

// Trials are those of a workload on the history's own target that did not fail, fastest first.
func (h *History) Trials(digest string) []Trial { return h.known(digest) }

// samples are those of all tasks, in their order; processors share the tasks.
func (h *History) samples() []costmodel.Sample {
	lists := make([][]costmodel.Sample, len(h.tasks))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(len(h.tasks), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for k := range next {
				lists[k] = h.tasks[k].samples(taskName(k), maxRows/len(h.tasks))
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

// taskName orders tasks as they are numbered.
func taskName(number int) string { return fmt.Sprintf("%08d", number) }

// samples are at most so many trials of a task, under a name, for training: the faster half of them its best ones, the
// others spread evenly.
func (t *Task) samples(name string, most int) []costmodel.Sample {
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
	var samples []costmodel.Sample
	for _, trial := range list {
		if row := t.describes(trial); row.Whole() {
			samples = append(samples, costmodel.Sample{Features: row, Task: name, LatencySeconds: trial.LatencySeconds})
		}
	}
	return samples
}
