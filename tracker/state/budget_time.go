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

// timeSpent is how long the farm was able to work on a job: the tracker ran, a tuner held the job, and a suitable
// builder and device were available. Agents' clocks play no part. The time is stored whenever the job's row is.
type timeSpent struct {
	spent, stored time.Duration
	// counted is the time up to which it is counted, by Clock; zero without a tuner, or before the first tick.
	counted time.Time
	// running is set if the time was running at that point.
	running bool
}

const (
	// maxCounted bounds the time counted at once. Ticks are a second apart; whatever delays one, such as a suspended
	// machine, usually stops the farm as well.
	maxCounted = 2 * time.Second
	// storeEvery bounds how much of a budget's time a crash may lose.
	storeEvery = 10 * time.Second
)

// timeLeft returns the rest of the time budget; limited is false without a budget.
func (j *job) timeLeft() (left time.Duration, limited bool) {
	budget := j.spec.GetBudget().GetTime()
	if budget == nil || !j.searches() {
		return 0, false
	}
	return budget.AsDuration() - j.spent, true
}

// countTime adds the time since its last call if the farm was able to work on the job.
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
	j.spent += min(max(j.counted.Sub(since), 0), maxCounted)
	j.meta.TimeSpent = durationpb.New(j.spent)
	if _, limited := j.timeLeft(); limited && j.spent-j.stored >= storeEvery {
		c.touch(j)
	}
}

// canWork reports whether a responsive tuner holds the job and everything else that the job needs is available.
func (m *Machine) canWork(j *job, known *supplies) bool {
	if j.lease == nil || !j.searches() || m.outage != nil || m.isSilent(j.lease.agent, m.cfg.Clock()) {
		return false
	}
	_, reason := m.blocked(known, j)
	return reason == 0
}

// ChargeTime counts the time of all jobs, ends jobs whose time budget is spent, and records which jobs are blocked. It
// must be called at every tick.
func (c *Change) ChargeTime() {
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
	c.logLacks(c.supplies, known)
	c.Machine.supplies, c.Machine.nextSpent = known, next
}

// StoreTime stores all counted time, so that a clean shutdown loses none.
func (c *Change) StoreTime() {
	for _, j := range c.jobs {
		if j.spent != j.stored {
			c.touch(j)
		}
	}
}

// endSpent ends a job whose time is spent. A job without any result has failed.
func (c *Change) endSpent(j *job) {
	if l := j.lease; l != nil {
		l.agent.completed++
		l.agent.failures.Reset()
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

// searchWork returns a tuner's view of a job. Old tuners compute the elapsed time from the job's start, so StartedAt
// is adjusted to make their result correct.
func (c *Change) searchWork(j *job) *tilthv1.SearchWork {
	work := &tilthv1.SearchWork{Job: j.whole()}
	if left, limited := j.timeLeft(); limited {
		work.TimeLeft = durationpb.New(max(left, 0))
		work.Job.StartedAt, work.Job.Paused = timestamppb.New(c.cfg.Now().Add(-j.spent)), nil
	}
	return work
}

// recoverTime restores the stored time. For jobs from before the tracker counted it, the time is that of the last
// event since the start, less the pauses.
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
