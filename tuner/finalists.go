package tuner

import (
	"cmp"
	"slices"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const (
	// maxFinalists is the maximum number of finalists that one batch measures in turns, beside the default schedule.
	maxFinalists = 4
	// reserved is the divisor of the job's budget, in trials or time, that yields the reserve for finalists.
	reserved = 20
)

// rival is a verified candidate with its measurements.
type rival struct {
	candidate         *tilthv1.Candidate
	low, median, high float64
}

// rivals holds the best candidates of a task, ordered by median latency.
type rivals struct {
	list []rival
	// standard is the default schedule, of standardDigest, once it was measured.
	standard       *tilthv1.Candidate
	standardDigest string
	// raced is set once finalists of the task were proposed.
	raced bool
}

// add records a measurement. Measurements without repeats are ignored because their noise is unknown.
func (r *rivals) add(m *tilthv1.Measurement) {
	i := m.GetInterval()
	if i.GetLevel() == 0 {
		return
	}
	if m.GetCandidate().GetDigest() == r.standardDigest {
		r.standard = m.GetCandidate()
	}
	r.list = append(r.list, rival{m.GetCandidate(), i.GetLowSeconds(), m.GetLatencySeconds(), i.GetHighSeconds()})
	slices.SortStableFunc(r.list, func(a, b rival) int { return cmp.Compare(a.median, b.median) })
	r.list = r.list[:min(len(r.list), 2*maxFinalists)]
}

// finalists returns the candidates that the measurements cannot separate, best first, and the default schedule: a
// best that is not measured beside it may owe its speed-up to a quieter machine. It returns nil if there is nothing to
// decide.
func (r *rivals) finalists() (list []*tilthv1.Candidate) {
	if r.raced || len(r.list) == 0 {
		return nil
	}
	best := r.list[0]
	close := slices.DeleteFunc(slices.Clone(r.list[1:]), func(o rival) bool { return o.low >= best.high })
	list = append(list, best.candidate)
	for _, o := range close[:min(len(close), maxFinalists-1)] {
		list = append(list, o.candidate)
	}
	isStandard := func(c *tilthv1.Candidate) bool { return c.GetDigest() == r.standardDigest }
	if r.standard != nil && !slices.ContainsFunc(list, isStandard) {
		list = append(list, r.standard)
	}
	if len(list) == 1 {
		return nil
	}
	return list
}

// stake returns how many seconds of the job's weighted latency a race of the task may change.
func (t *task) stake() float64 {
	smallest := t.rivals.list[0].low
	for _, o := range t.rivals.list {
		smallest = min(smallest, o.low)
	}
	return t.weight * (t.rivals.list[0].high - smallest)
}

// undecided returns the task whose finalists should be measured next: the one with the highest stake. waits
// is true if trials in flight may add more finalists.
func (j *job) undecided() (chosen *task, waits bool) {
	for _, t := range j.tasks {
		if len(t.rivals.finalists()) == 0 {
			continue
		}
		if t.recorded < t.proposed {
			waits = true
		} else if chosen == nil || t.stake() > chosen.stake() {
			chosen = t
		}
	}
	return chosen, waits && len(j.inFlight) > 0
}

// closing reports whether the rest of the budget is reserved for finalists.
func (j *job) closing(now time.Time) bool {
	if j.budget.GetTrials() > 0 && j.remaining() <= j.reserve() {
		return true
	}
	if left, limited := j.time.leftAt(now); limited && left <= j.time.limit/reserved+j.backlog(now) {
		return true
	}
	return j.stopped() || j.next() == nil
}

// backlog estimates how long the trials in flight take at the pace so far. Finalists are measured after them.
func (j *job) backlog(now time.Time) time.Duration {
	var open, done int
	for _, n := range j.inFlight {
		open += n
	}
	for _, t := range j.tasks {
		done += t.recorded
	}
	if done == 0 {
		return 0
	}
	return now.Sub(j.time.start) / time.Duration(done) * time.Duration(open)
}

// reserve returns the number of trials reserved for finalists.
func (j *job) reserve() int { return int(j.budget.GetTrials()) / reserved }

// searchable returns how many trials the search may propose now, without the reserve for finalists.
func (j *job) searchable() int {
	if left := j.remaining() - j.reserve(); left > 0 {
		return left
	}
	return j.remaining()
}

// race returns a batch of finalists, or nil if none can be proposed now. waits is then true if the search
// should wait for some.
func (j *job) race(now time.Time) (b *batch, waits bool) {
	if !j.closing(now) {
		return nil, false
	}
	t, waits := j.undecided()
	if t == nil {
		return nil, waits
	}
	list := t.rivals.finalists()
	if list = list[:min(len(list), j.remaining())]; len(list) < 2 {
		return nil, false
	}
	return &batch{task: t, finalists: list}, false
}

// remeasure returns a batch for the first task with a doubtful best candidate, one that was measured while its device
// changed: the best candidate and its rivals are measured once more, in turns. It ignores an exhausted budget, because
// a wrong best candidate is worse than a few extra trials. It returns nil if there is no such task.
func (j *job) remeasure() *batch {
	for _, t := range j.tasks {
		if t.doubt == nil {
			continue
		}
		best := t.doubt.GetCandidate()
		list := []*tilthv1.Candidate{best}
		for _, r := range t.rivals.list {
			if r.candidate.GetDigest() != best.GetDigest() && len(list) < maxFinalists {
				list = append(list, r.candidate)
			}
		}
		return &batch{task: t, finalists: list, remeasured: t.doubt.GetReason()}
	}
	return nil
}

// replace replaces a rival's older measurements with a new one. A failed measurement removes the rival.
func (r *rivals) replace(m *tilthv1.Measurement) {
	r.list = slices.DeleteFunc(r.list, func(o rival) bool { return o.candidate.GetDigest() == m.GetCandidate().GetDigest() })
	r.add(m)
}
