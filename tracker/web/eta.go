package web

import (
	"time"

	"github.com/tilth-dev/tilth/internal/humanize"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// remainingTime estimates a job's remaining time; "" if unknown. For a budget of trials it assumes that the
// remaining trials take as long as the past ones on average.
func remainingTime(job *tilthv1.Job, trials uint32) string {
	if job.GetEndedAt() != nil {
		return ""
	}
	b, spent := job.GetSpec().GetBudget(), job.GetTimeSpent().AsDuration()
	text := ""
	var shortest time.Duration
	if b.GetTime() != nil {
		shortest = max(b.GetTime().AsDuration()-spent, 0)
		text = humanize.Clock(shortest)
	}
	if b.GetTrials() > 0 && trials > 0 && spent > 0 {
		each := float64(spent) / float64(trials)
		remaining := time.Duration(each * float64(b.GetTrials()-min(trials, b.GetTrials())))
		if text == "" || remaining < shortest {
			text = "about " + humanize.Clock(remaining)
		}
	}
	return text
}
