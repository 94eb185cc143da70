package tuner

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/roofline"
)

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
