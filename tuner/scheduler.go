package tuner

import "math"

// scheduler chooses the task that the next batch goes to: the one from which the largest decrease of the weighted
// latency of all tasks is expected for the time that its trials take.
type scheduler struct{ tasks []*task }

const (
	// patience is how many trials without progress end a task, and impatience the part of its trials that must have
	// been without.
	patience   = 96
	impatience = 0.5
	// hopeless is how many trials may fail before a task without a single success waits for all others.
	hopeless = 64
	// prior is how many doublings of a task's trials the experience of all tasks counts for.
	prior = 1.0
	// priorTrials is how many trials of its own the mean time of all tasks' trials counts for, in the time that a
	// task's are expected to take.
	priorTrials = 8.0
	// firstGain is by how much a doubling of the trials lowers the logarithm of a latency, before there is any
	// experience.
	firstGain = 0.2
	// nearLimit is the part of the distance to the machine's limit that a doubling of the trials may at most be
	// expected to save.
	nearLimit = 0.5
)

// next is the task to spend the next batch on; nil when all are exhausted or have converged.
func (s *scheduler) next() *task {
	var chosen *task
	most := 0.0
	for _, t := range s.tasks {
		if t.exhausted || t.converged() {
			continue
		}
		if c := s.claim(t); chosen == nil || c > most {
			chosen, most = t, c
		}
	}
	return chosen
}

// converged says that a task has made no progress for so long that none is expected.
func (t *task) converged() bool {
	if t.best == 0 || t.recorded < min(firstBatch, t.proposed) {
		return false
	}
	stale := t.known.stale + t.stale
	return stale >= patience && float64(stale) >= impatience*float64(t.trials())
}

// trials is how many there were, before the job and in it.
func (t *task) trials() int { return t.known.trials + t.recorded }

// claim is how much a task deserves the next batch. One that was never tried comes first, then one that has only
// failed so far, but not for ever; one whose first results are still to come waits for them.
func (s *scheduler) claim(t *task) float64 {
	switch {
	case t.proposed == 0:
		return math.Inf(1)
	case t.best > 0:
		return s.gain(t)
	case t.recorded < t.proposed || t.failures.total() >= hopeless:
		return 0
	}
	return math.MaxFloat64
}

// gain is the expected decrease of the weighted latency for the time of a mean trial, spent on the next trials of a
// task. Latencies fall by about as much with each doubling of the number of trials as they did with the last, be it of
// this task or, where it has little experience of its own, of all.
func (s *scheduler) gain(t *task) float64 {
	own, doublings := t.experience(), math.Log2(float64(1+t.recorded))
	drop := (own*doublings + s.experience()*prior) / (doublings + prior)
	if t.limit > 0 && t.best > t.limit { // below it are algorithms that need fewer operations
		drop = min(drop, nearLimit*math.Log(t.best/t.limit))
	}
	pending := t.known.trials + t.proposed
	return t.weight * t.best * drop / (math.Ln2 * float64(pending+1)) / s.cost(t)
}

// cost is how many mean trials' time a trial of a task is expected to take. Most of it is compiling, which takes two
// to five times as long for some tasks as for others.
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

// experience is by how much the last doubling of the trials lowered the logarithm of the latency.
func (t *task) experience() float64 {
	n := len(t.curve)
	if n < 2 || t.best == 0 {
		return firstGain
	}
	before := t.curve[(n-1)/2]
	if t.known.best > 0 && (before == 0 || t.known.best < before) {
		before = t.known.best
	}
	if before == 0 { // that was before the first success
		return firstGain
	}
	return max(0, math.Log(before/t.best))
}

// experience is the mean of the tasks'.
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
