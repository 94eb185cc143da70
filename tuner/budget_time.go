package tuner

import (
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// budgetTime tracks the time budget of a job. The tracker counts the time and ends the job; the last status
// that it sent is enough to plan with.
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
}

func newBudgetTime(work *tilthv1.SearchWork) budgetTime {
	limit, left, now := work.GetJob().GetSpec().GetBudget().GetTime().AsDuration(), work.GetTimeLeft().AsDuration(), time.Now()
	return budgetTime{limit: limit, left: left, start: now.Add(left - limit), reportedAt: now, runs: true}
}

// applyStatus applies a status from the tracker.
func (b *budgetTime) applyStatus(s *tilthv1.JobStatus, now time.Time) {
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
