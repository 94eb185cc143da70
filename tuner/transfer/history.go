package transfer

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

// known returns the trials of a workload on the history's own target, fastest first.
func (h *History) known(digest string) []Trial {
	if t := h.own(digest); t != nil {
		return t.derive().ranked
	}
	return nil
}

// Trials returns the successful trials of a workload on the history's own target, fastest first.
func (h *History) Trials(digest string) []Trial { return h.known(digest) }

// samples returns the samples of all tasks, in order. It works on several tasks in parallel.
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
