package tuner

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/internal/trap"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// task is the state of one task of a job.
type task struct {
	index  int
	search Search
	// weight is how often the task's workload occurs in the model.
	weight float64
	// limit is the least time in seconds that the machine could take; 0 when it is not known.
	limit float64
	// known is what was measured of the workload before the job.
	known known
	// proposed and recorded count trials, best is the lowest latency in seconds so far, 0 for none.
	proposed, recorded int
	best               float64
	// watts is the power of the first candidate whose energy was measured; 0 = none was.
	watts float64
	// seconds is what building and measuring the recorded ones took.
	seconds float64
	// curve has the best after each trial that was recorded; 0 before the first that was right.
	curve []float64
	// stale counts the trials since the best last fell by more than a hundredth, those from before the job not
	// included.
	stale int
	// exhausted is set when the search has nothing left to propose.
	exhausted bool
	failures  failures
	rivals    rivals
	// doubt is set while the best is to be measured again, since its device changed.
	doubt *tilthv1.MeasurementSuspected
}

func newTask(index int, search Search, weight float64, k known) *task {
	return &task{index: index, search: search, weight: max(weight, math.SmallestNonzeroFloat64), known: k}
}

// known sums up earlier trials of a task's workload on its target.
type known struct {
	trials int
	best   float64
	// stale counts those after the best last fell by more than a hundredth.
	stale int
}

// confirmation is how many times slower than recorded the best of a workload may come out when it is measured again.
const confirmation = 1.03

// confirmed says whether what a job's first trials came to, of which the fastest earlier ones are a part, bears out
// what was recorded. If not, the machine or the compiler has changed since, and how long the search was without
// progress then means nothing now.
func (k known) confirmed(best float64) bool {
	return k.best > 0 && best > 0 && best <= confirmation*k.best
}

// progress is by how much a latency must fall to count.
const progress = 0.01

// newKnown sums up latencies in the order in which they were measured; 0 is a failure.
func newKnown(latencies []float64) (k known) {
	for _, l := range latencies {
		k.trials++
		k.stale++
		if l <= 0 {
			continue
		}
		if k.best == 0 || l < (1-progress)*k.best {
			k.stale = 0
		}
		if k.best == 0 || l < k.best {
			k.best = l
		}
	}
	return k
}

// propose asks the search for up to n candidates. The error is a bug of the search or of the compiler.
func (t *task) propose(n int) (candidates []Candidate, err error) {
	defer trap.AsError(&err)
	return t.search.Propose(n), nil
}

// record notes the result of a trial.
func (t *task) record(m *tilthv1.Measurement) {
	t.recorded++
	t.stale++
	t.seconds += m.GetBuildSeconds() + m.GetRunSeconds()
	latency := m.GetLatencySeconds()
	switch {
	case m.GetError() != tilthv1.ErrorClass_ERROR_CLASS_NONE:
		t.failures.add(m)
	case t.best == 0 || latency < t.best:
		if before := t.reference(); before == 0 || latency < (1-progress)*before {
			t.stale, t.known.stale = 0, 0
		}
		t.best = latency
	}
	t.curve = append(t.curve, t.best)
	if t.recorded == firstBatch && !t.known.confirmed(t.best) {
		t.known = known{}
	}
}

// reference is the latency that a new one must be below to be progress; 0 when there is none.
func (t *task) reference() float64 {
	if t.best == 0 || t.known.best > 0 && t.known.best < t.best {
		return t.known.best
	}
	return t.best
}

// failures counts failed trials by class of error, and keeps the first message of each.
type failures struct {
	counts   map[tilthv1.ErrorClass]int
	messages map[tilthv1.ErrorClass]string
}

func (f *failures) add(m *tilthv1.Measurement) {
	if f.counts == nil {
		f.counts, f.messages = map[tilthv1.ErrorClass]int{}, map[tilthv1.ErrorClass]string{}
	}
	if f.counts[m.GetError()]++; f.counts[m.GetError()] == 1 {
		f.messages[m.GetError()] = m.GetMessage()
	}
}

func (f *failures) total() (n int) {
	for _, c := range f.counts {
		n += c
	}
	return n
}

// String is each class with its number and first message, in the order of the classes.
func (f *failures) String() string {
	var parts []string
	for _, class := range slices.Sorted(maps.Keys(f.counts)) {
		name := strings.ToLower(strings.TrimPrefix(class.String(), "ERROR_CLASS_"))
		parts = append(parts, fmt.Sprintf("%d %s, the first said: %s", f.counts[class], name, f.messages[class]))
	}
	return strings.Join(parts, "; ")
}
