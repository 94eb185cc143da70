package tuner

import (
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// budgetTime is the time of a job's budget. The tracker counts it and ends the job; what it told last is enough to
// plan by. Trackers from before they did so leave it to the tuner.
type budgetTime struct {
	// limit is the whole of it; 0 = none.
	limit time.Duration
	// left was left when the tracker told, at told, and runs says whether it went on from there.
	left time.Duration
	told time.Time
	runs bool
	// start is when it began, put off by as long as the job was paused or nothing could be done.
	start time.Time
	// own says that the tuner ends the job.
	own bool
}

func newBudgetTime(work *tilthv1.SearchWork) budgetTime {
	j, now := work.GetJob(), time.Now()
	b := budgetTime{
		limit: j.GetSpec().GetBudget().GetTime().AsDuration(), start: j.GetStartedAt().AsTime().Add(j.GetPaused().AsDuration()), told: now, runs: true,
	}
	if left := work.GetTimeLeft(); left != nil {
		b.left, b.start = left.AsDuration(), now.Add(left.AsDuration()-b.limit)
	} else {
		b.own, b.left = b.limit > 0, b.limit-now.Sub(b.start)
	}
	return b
}

// tell takes in what the tracker says of it.
func (b *budgetTime) tell(s *tilthv1.JobStatus, now time.Time) {
	if b.own || s.GetTimeSpent() == nil {
		return
	}
	spent := s.GetTimeSpent().AsDuration()
	b.left, b.told, b.runs, b.start = b.limit-spent, now, s.GetTimeRuns(), now.Add(-spent)
}

// leftAt is how much is left, as far as the tuner knows; limited is false when there is no end to it.
func (b *budgetTime) leftAt(now time.Time) (left time.Duration, limited bool) {
	left = b.left
	if b.runs {
		left -= now.Sub(b.told)
	}
	return left, b.limit > 0
}

// deadline is when the tuner ends the job; zero when that is the tracker's to do, or nobody's.
func (b *budgetTime) deadline() time.Time {
	if !b.own {
		return time.Time{}
	}
	return b.start.Add(b.limit)
}
