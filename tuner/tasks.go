package tuner

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/internal/humanize"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// task is the state of one task of a job.
type task struct {
	index  int
	search Search
	// weight is the number of occurrences of the task's workload in the model.
	weight float64
	// limit is the machine's lower bound of the latency in seconds; 0 if unknown. estimate is a rough one, in
	// place of a latency, that only orders tasks.
	limit, estimate float64
	// known summarises the measurements of the workload before the job.
	known known
	// proposed and recorded count trials. best is the lowest latency in seconds so far, or 0.
	proposed, recorded int
	best               float64
	// watts is the power of the first candidate with a measured energy, or 0.
	watts float64
	// seconds is the time spent on building and measuring the recorded trials.
	seconds float64
	// curve holds the best latency after each recorded trial; 0 before the first success.
	curve []float64
	// stale counts the trials of the job since the best latency last fell by more than a hundredth.
	stale int
	// exhausted is set if the search has nothing left to propose.
	exhausted bool
	failures  failures
	rivals    rivals
	// doubt is set while the best candidate must be measured again because its device changed.
	doubt *tilthv1.MeasurementSuspected
}

func newTask(index int, search Search, weight float64, k known) *task {
	return &task{index: index, search: search, weight: max(weight, math.SmallestNonzeroFloat64), known: k}
}

// share returns the task's part of the model's latency in seconds, estimated without a trial.
func (t *task) share() float64 { return t.weight * cmp.Or(t.best, t.known.best, t.estimate) }

// known summarises the earlier trials of a task's workload on its target.
type known struct {
	trials int
	best   float64
	// stale counts the trials since the best latency last fell by more than a hundredth.
	stale int
}

// confirmation is the maximum ratio between the new and the recorded latency of a workload's best candidate
// for the record to count as confirmed.
const confirmation = 1.03

// confirmed reports whether the first trials of a job, which include the fastest earlier candidates, confirm the
// record. If not, the machine or the compiler has changed, and the earlier lack of progress means nothing.
func (k known) confirmed(best float64) bool {
	return k.best > 0 && best > 0 && best <= confirmation*k.best
}

// progress is the relative decrease of a latency that counts as progress.
const progress = 0.01

// newKnown summarises latencies in the order of measurement; 0 is a failure.
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

// propose asks the search for up to n candidates. An error is a bug of the search or of the compiler.
func (t *task) propose(n int) (candidates []Candidate, err error) {
	defer schedule.RecoverAs(&err)
	return t.search.Propose(n), nil
}

// record applies the result of a trial.
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

// reference returns the latency that a new one must undercut to count as progress, or 0.
func (t *task) reference() float64 {
	if t.best == 0 || t.known.best > 0 && t.known.best < t.best {
		return t.known.best
	}
	return t.best
}

// failures counts failed trials by error class and keeps the first message of each class.
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

// String lists each class with its count and first message, in the order of the classes.
func (f *failures) String() string {
	return humanize.Join(slices.Sorted(maps.Keys(f.counts)), "; ", func(class tilthv1.ErrorClass) string {
		name := strings.ToLower(strings.TrimPrefix(class.String(), "ERROR_CLASS_"))
		return fmt.Sprintf("%d %s, the first said: %s", f.counts[class], name, f.messages[class])
	})
}

// costed returns a measurement on the scale of the search. If the objective is energy, times are replaced by
// the time that the candidate's energy would last at the power of the task's first candidate, because the
// search only handles seconds.
func (t *task) costed(m *tilthv1.Measurement) *tilthv1.Measurement {
	joules, seconds := m.GetEnergyJoules(), m.GetLatencySeconds()
	if joules == 0 || seconds == 0 {
		return m
	}
	watts := joules / seconds
	t.watts = cmp.Or(t.watts, watts)
	share := watts / t.watts
	return &tilthv1.Measurement{
		Candidate: m.GetCandidate(), LatencySeconds: share * seconds, BuildSeconds: m.GetBuildSeconds(), RunSeconds: m.GetRunSeconds(),
		Error: m.GetError(), Remeasured: m.GetRemeasured(), RelativeError: m.GetRelativeError(),
		Interval: &tilthv1.Interval{
			LowSeconds: share * m.GetInterval().GetLowSeconds(), HighSeconds: share * m.GetInterval().GetHighSeconds(), Level: m.GetInterval().GetLevel(),
		},
	}
}

// confirm adopts the tracker's choice of a candidate's best measurement, in seconds. It does nothing for
// energy, where a better measurement is recognised by its value.
func (t *task) confirm(m *tilthv1.Measurement, best float64) {
	switch latency := m.GetLatencySeconds(); {
	case t.watts == 0 && best > 0:
		t.best = best
	case t.watts > 0 && latency > 0 && latency < t.best:
		t.best = latency
	}
}

// nominal holds rates of a common machine, which order the tasks of an unmeasured one.
var nominal = roofline.Rates{FlopPerSecond: 100e9, Stores: []roofline.Store{{Name: "memory", Bytes: roofline.MemoryBytes, BytesPerSecond: 10e9}}}

// scheduler chooses the task that gets the next batch: the one with the largest expected decrease of the
// weighted latency of all tasks per unit of time.
type scheduler struct{ tasks []*task }

const (
	// patience is the number of trials without progress that end a task. impatience is the share of its
	// trials that they must exceed.
	patience   = 96
	impatience = 0.5
	// maxFailures is the number of failed trials after which a task without a success yields to all others.
	maxFailures = 64
	// prior is the weight of the mean experience of all tasks, in doublings of a task's trials.
	prior = 1.0
	// priorTrials is the weight, in trials, of the mean trial time of all tasks in the expected trial time of a task.
	priorTrials = 8.0
	// firstGain is the initial estimate of how much a doubling of the trials lowers the logarithm of a latency.
	firstGain = 0.2
	// nearLimit is the maximum share of the distance to the machine's limit that a doubling of the trials is
	// expected to save.
	nearLimit = 0.5
)

// next returns the task for the next batch, or nil if all are exhausted or have converged. Of tasks with equal
// claims, the one with the largest share of the model's time comes first.
func (s *scheduler) next() *task {
	var chosen *task
	largest := 0.0
	for _, t := range s.tasks {
		if t.exhausted || t.converged() {
			continue
		}
		if c := s.claim(t); chosen == nil || c > largest || c == largest && t.share() > chosen.share() {
			chosen, largest = t, c
		}
	}
	return chosen
}

// converged reports whether a task has made no progress for so long that none is expected.
func (t *task) converged() bool {
	if t.best == 0 || t.recorded < min(firstBatch, t.proposed) {
		return false
	}
	stale := t.known.stale + t.stale
	return stale >= patience && float64(stale) >= impatience*float64(t.trials())
}

// trials returns the number of trials, including those before the job.
func (t *task) trials() int { return t.known.trials + t.recorded }

// claim returns the priority of a task. A task without trials comes first, then one with failures only, up to
// a limit. A task whose first results are pending waits for them.
func (s *scheduler) claim(t *task) float64 {
	switch {
	case t.proposed == 0:
		return math.Inf(1)
	case t.best > 0:
		return s.gain(t)
	case t.recorded < t.proposed || t.failures.total() >= maxFailures:
		return 0
	}
	return math.MaxFloat64
}

// gain returns the expected decrease of the weighted latency per mean trial time, if the next trials go to
// the task. Each doubling of the number of trials is assumed to lower the latency as much as the last one
// did, for this task or, if it has few trials, for all tasks.
func (s *scheduler) gain(t *task) float64 {
	own, doublings := t.experience(), math.Log2(float64(1+t.recorded))
	drop := (own*doublings + s.experience()*prior) / (doublings + prior)
	if t.limit > 0 && t.best > t.limit { // algorithms with fewer operations are below the limit
		drop = min(drop, nearLimit*math.Log(t.best/t.limit))
	}
	pending := t.known.trials + t.proposed
	return t.weight * t.best * drop / (math.Ln2 * float64(pending+1)) / s.cost(t)
}

// cost returns the expected time of a trial of the task in mean trial times. Most of it is compilation, which
// takes two to five times as long for some tasks as for others.
func (s *scheduler) cost(t *task) float64 {
	seconds, trials := 0.0, 0
	for _, other := range s.tasks {
		seconds += other.seconds
		trials += other.recorded
	}
	if seconds <= 0 {
		return 1
	}
	mean := seconds / float64(trials)
	return (t.seconds/mean + priorTrials) / (float64(t.recorded) + priorTrials)
}

// experience returns how much the last doubling of the trials lowered the logarithm of the latency.
func (t *task) experience() float64 {
	n := len(t.curve)
	if n < 2 || t.best == 0 {
		return firstGain
	}
	before := t.curve[(n-1)/2]
	if t.known.best > 0 && (before == 0 || t.known.best < before) {
		before = t.known.best
	}
	if before == 0 { // before the first success
		return firstGain
	}
	return max(0, math.Log(before/t.best))
}

// experience returns the mean experience of the tasks.
func (s *scheduler) experience() float64 {
	sum, n := firstGain, 1.0
	for _, t := range s.tasks {
		if len(t.curve) >= 2 && t.best > 0 {
			sum += t.experience()
			n++
		}
	}
	return sum / n
}
