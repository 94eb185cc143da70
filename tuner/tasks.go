package tuner

import (
	"math"

	"github.com/tilth-dev/tilth/internal/trap"
)

// task is the state of one task of a job.
type task struct {
	index  int
	search Search
	// weight is how often the task's workload occurs in the model.
	weight float64
	// proposed and recorded count trials, best is the lowest latency in seconds so far, 0 for none.
	proposed, recorded int
	best               float64
	// stale counts the trials recorded since the best last fell by more than a hundredth.
	stale int
	// exhausted is set when the search has nothing left to propose.
	exhausted bool
	// failures counts failed trials; failure is the first one's message.
	failures int
	failure  string
}

// propose asks the search for up to n candidates. The error is a bug of the search or of the compiler.
func (t *task) propose(n int) (candidates []Candidate, err error) {
	defer trap.AsError(&err)
	return t.search.Propose(n), nil
}

func (t *task) record(latency float64, failed bool, message string) {
	t.recorded++
	t.stale++
	if failed {
		if t.failures++; t.failures == 1 {
			t.failure = message
		}
		return
	}
	if t.best == 0 || latency < 0.99*t.best {
		t.stale = 0
	}
	if t.best == 0 || latency < t.best {
		t.best = latency
	}
}

// patience is how many trials without progress halve a task's claim to the next batch.
const patience = 48

// hopeless is how many trials may fail before a task without a single success waits for all others.
const hopeless = 64

// claim is how much a task deserves the next batch: its share of the model's latency for each trial spent on it, less the
// longer it made no progress. A task that was never tried comes first, then one that has only failed so far, but not for
// ever; one whose first results are still to come waits for them.
func (t *task) claim() float64 {
	switch {
	case t.proposed == 0:
		return math.Inf(1)
	case t.best > 0:
		claim := t.weight * t.best / float64(t.proposed+1)
		return math.Ldexp(claim, -t.stale/patience)
	case t.recorded < t.proposed || t.failures >= hopeless:
		return 0
	}
	return math.MaxFloat64
}

// next is the task to spend the next batch on; nil when all are exhausted.
func next(tasks []*task) *task {
	var chosen *task
	for _, t := range tasks {
		if !t.exhausted && (chosen == nil || t.claim() > chosen.claim()) {
			chosen = t
		}
	}
	return chosen
}
