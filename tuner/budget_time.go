package tuner

import (
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// budgetTime tracks the time budget of a job. The tracker counts the time and ends the job; the last status
// that it sent is enough to plan with. With older trackers, which do not report the time left, the tuner ends
// the job itself.
type budgetTime struct {
	// limit is the whole budget; 0 means no limit.
	limit time.Duration
	// left was the time left at reportedAt, when the tracker last reported it. runs reports whether the
	// clock was running.
	left       time.Duration
	reportedAt time.Time
	runs       bool
	// start is the start of the clock, shifted by the time for which the job was paused or could not proceed.
	start time.Time
	// endsJob is set if the tuner has to end the job.
	endsJob bool
}

func newBudgetTime(work *tilthv1.SearchWork) budgetTime {
	j, now := work.GetJob(), time.Now()
	b := budgetTime{
		limit: j.GetSpec().GetBudget().GetTime().AsDuration(), start: j.GetStartedAt().AsTime().Add(j.GetPaused().AsDuration()), reportedAt: now, runs: true,
	}
	if left := work.GetTimeLeft(); left != nil {
		b.left, b.start = left.AsDuration(), now.Add(left.AsDuration()-b.limit)
	} else {
		b.endsJob, b.left = b.limit > 0, b.limit-now.Sub(b.start)
	}
	return b
}

// applyStatus applies a status from the tracker.
func (b *budgetTime) applyStatus(s *tilthv1.JobStatus, now time.Time) {
	if b.endsJob || s.GetTimeSpent() == nil {
		return
	}
	spent := s.GetTimeSpent().AsDuration()
	b.left, b.reportedAt, b.runs, b.start = b.limit-spent, now, s.GetTimeRuns(), now.Add(-spent)
}

// leftAt estimates the time left. limited is false if the job has no time budget.
func (b *budgetTime) leftAt(now time.Time) (left time.Duration, limited bool) {
	left = b.left
	if b.runs {
		left -= now.Sub(b.reportedAt)
	}
	return left, b.limit > 0
}

// deadline returns the time at which the tuner must end the job, or zero if the tracker ends it or the job
// has no time budget.
func (b *budgetTime) deadline() time.Time {
	if !b.endsJob {
		return time.Time{}
	}
	return b.start.Add(b.limit)
}
