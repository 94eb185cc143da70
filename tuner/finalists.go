package tuner

import (
	"cmp"
	"slices"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const (
	// mostFinalists take turns in one batch.
	mostFinalists = 4
	// reserved is the part of a job's budget, in trials or in time, that is kept for finalists.
	reserved = 20
)

// rival is a verified candidate with what was measured of it.
type rival struct {
	candidate         *tilthv1.Candidate
	low, median, high float64
}

// rivals are a task's best candidates, the one with the lowest median first.
type rivals struct {
	list []rival
	// raced says that finalists of the task were proposed.
	raced bool
}

// add notes a measurement. One that is not repeated, so that nothing is known of its noise, is no rival.
func (r *rivals) add(m *tilthv1.Measurement) {
	i := m.GetInterval()
	if i.GetLevel() == 0 {
		return
	}
	r.list = append(r.list, rival{m.GetCandidate(), i.GetLowSeconds(), m.GetLatencySeconds(), i.GetHighSeconds()})
	slices.SortStableFunc(r.list, func(a, b rival) int { return cmp.Compare(a.median, b.median) })
	r.list = r.list[:min(len(r.list), 2*mostFinalists)]
}

// finalists are the candidates between which the measurements do not decide, the best so far first; none when they do.
func (r *rivals) finalists() (list []*tilthv1.Candidate) {
	if r.raced || len(r.list) == 0 {
		return nil
	}
	best := r.list[0]
	close := slices.DeleteFunc(slices.Clone(r.list[1:]), func(o rival) bool { return o.low >= best.high })
	if len(close) == 0 {
		return nil
	}
	list = append(list, best.candidate)
	for _, o := range close[:min(len(close), mostFinalists-1)] {
		list = append(list, o.candidate)
	}
	return list
}

// stake is how many seconds of the job's weighted latency may depend on a task's race.
func (t *task) stake() float64 {
	least := t.rivals.list[0].low
	for _, o := range t.rivals.list {
		least = min(least, o.low)
	}
	return t.weight * (t.rivals.list[0].high - least)
}

// undecided is the task whose finalists are to be measured next: the one with the highest stake. waits says that there
// will be more when the trials in flight are known.
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

// closing says that the rest of the budget is for finalists, as long as there are any.
func (j *job) closing(now time.Time) bool {
	if j.budget.GetTrials() > 0 && j.remaining() <= j.reserve() {
		return true
	}
	if left, limited := j.time.leftAt(now); limited && left <= j.time.limit/reserved+j.backlog(now) {
		return true
	}
	return j.stopped() || j.next() == nil
}

// backlog is how long the trials in flight take at the job's pace so far: finalists come after them.
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

// reserve is how many trials are kept for finalists.
func (j *job) reserve() int { return int(j.budget.GetTrials()) / reserved }

// searchable is how many trials the search may propose now: those that finalists leave it.
func (j *job) searchable() int {
	if left := j.remaining() - j.reserve(); left > 0 {
		return left
	}
	return j.remaining()
}

// race is a batch of finalists; nil when there is none to propose now, and then waits says whether the search should
// wait for some.
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
