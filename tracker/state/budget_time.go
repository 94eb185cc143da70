package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// timeSpent is how long the farm could work on a job: a tuner held it, and a builder and a device that fit were there,
// as was the tracker. No agent's clock has a part in it. It is stored with whatever else is stored of the job.
type timeSpent struct {
	spent, stored time.Duration
	// Until when it was counted, by Clock; zero while no tuner holds the job, and, after a start, until
	// the first beat.
	counted time.Time
	// It ran then.
	running bool
}

const (
	// mostCounted is how much is counted at once: beats are a second apart, and what delays one, such as a machine
	// that sleeps, most often stops the farm as well.
	mostCounted = 2 * time.Second
	// storeEvery is how much of a budget's time a crash may lose.
	storeEvery = 10 * time.Second
)

// timeLeft is what is left of the budget's time; limited is false when it has none.
func (j *job) timeLeft() (left time.Duration, limited bool) {
	budget := j.spec.GetBudget().GetTime()
	if budget == nil || !j.searches() {
		return 0, false
	}
	return budget.AsDuration() - j.spent, true
}

// beginTime counts from now on: a tuner has the job.
func (c *Change) beginTime(j *job) {
	j.counted = c.cfg.Clock()
	j.meta.TimeSpent = durationpb.New(j.spent)
}

// countTime counts the time since it did so last, if the farm can work on the job now.
func (c *Change) countTime(j *job, known *supplies) {
	since := j.counted
	j.running = c.canWork(j, known)
	if j.lease == nil || !j.searches() {
		return
	}
	j.counted = c.cfg.Clock()
	if !j.running || since.IsZero() {
		return
	}
	j.spent += min(max(j.counted.Sub(since), 0), mostCounted)
	j.meta.TimeSpent = durationpb.New(j.spent)
	if _, limited := j.timeLeft(); limited && j.spent-j.stored >= storeEvery {
		c.touch(j)
	}
}

// canWork says whether a tuner that is heard of holds the job, and whether all else that it needs is there.
func (m *Machine) canWork(j *job, known *supplies) bool {
	if j.lease == nil || !j.searches() || m.outage != nil || m.isSilent(j.lease.agent, m.cfg.Clock()) {
		return false
	}
	_, reason := m.blocked(known, j)
	return reason == 0
}

// KeepTime counts the time of all jobs' budgets, ends the jobs that have spent theirs, and notes which cannot go on.
// It is called at every beat.
func (c *Change) KeepTime() {
	var over []*job
	known, next := newSupplies(), time.Time{}
	for _, j := range c.jobs {
		c.noteBlocked(j, known)
		c.countTime(j, known)
		left, limited := j.timeLeft()
		switch {
		case !limited || j.paused():
		case left <= 0:
			over = append(over, j)
		case j.running && (next.IsZero() || j.counted.Add(left).Before(next)):
			next = j.counted.Add(left)
		}
	}
	slices.SortFunc(over, func(a, b *job) int { return cmp.Compare(a.id, b.id) })
	for _, j := range over {
		c.endSpent(j)
	}
	c.tellLacks(c.supplies, known)
	c.Machine.supplies, c.Machine.nextSpent = known, next
}

// StoreTime stores what was counted since it was stored last: a tracker that is stopped loses nothing of it.
func (c *Change) StoreTime() {
	for _, j := range c.jobs {
		if j.spent != j.stored {
			c.touch(j)
		}
	}
}

// endSpent ends a job whose time is spent. One that came to nothing has failed.
func (c *Change) endSpent(j *job) {
	if l := j.lease; l != nil {
		l.agent.completed++
		l.agent.rest.Forgive()
	}
	trials := 0
	for _, p := range j.progress {
		trials += int(p.GetTrials())
		if p.GetBestSeconds() > 0 || p.GetKnownBestSeconds() > 0 {
			c.end(j, tilthv1.JobState_JOB_STATE_DONE, "time spent")
			return
		}
	}
	reason := "time spent before the first trial was measured: give it more"
	if trials > 0 {
		reason = fmt.Sprintf("time spent, and none of %d trials was right", trials)
	}
	c.end(j, tilthv1.JobState_JOB_STATE_FAILED, reason)
}

// searchWork is what a tuner gets of a job. Tuners from before the tracker kept the time reckon it from the job's
// start, so they are told of one for which that comes out right.
func (c *Change) searchWork(j *job) *tilthv1.SearchWork {
	work := &tilthv1.SearchWork{Job: j.whole()}
	if left, limited := j.timeLeft(); limited {
		work.TimeLeft = durationpb.New(max(left, 0))
		work.Job.StartedAt, work.Job.Paused = timestamppb.New(c.cfg.Now().Add(-j.spent)), nil
	}
	return work
}

// recoverTime goes on with what was stored. Of a job from before the tracker kept the time it takes what passed until
// its last event, less its pauses.
func (m *Machine) recoverTime(rows Rows, j *job) error {
	switch {
	case j.meta.GetTimeSpent() != nil:
		j.spent = j.meta.GetTimeSpent().AsDuration()
	case j.meta.GetStartedAt() != nil && j.searches():
		last, err := rows.Events(j.id, j.lastSequence, 1)
		if err != nil {
			return err
		}
		if len(last) > 0 {
			passed := last[0].GetAt().AsTime().Sub(j.meta.GetStartedAt().AsTime())
			j.spent = max(passed-j.meta.GetPaused().AsDuration(), 0)
			j.meta.TimeSpent = durationpb.New(j.spent)
		}
	}
	j.stored = j.spent
	return nil
}
