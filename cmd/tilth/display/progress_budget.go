package display

import (
	"strings"
	"time"
)

// Budget is the budget of a job; zero values mean no limit.
type Budget struct {
	Trials int
	Time   time.Duration
}

// spent returns the used share of the budget, between 0 and 1.
func (b Budget) spent(trials int, elapsed time.Duration) float64 {
	share := 0.0
	if b.Trials > 0 {
		share = float64(trials) / float64(b.Trials)
	}
	if b.Time > 0 {
		share = max(share, elapsed.Seconds()/b.Time.Seconds())
	}
	return min(share, 1)
}

// left estimates how long the budget lasts at the current pace. ok is false if it is too early to tell.
func (b Budget) left(trials int, elapsed time.Duration) (left time.Duration, ok bool) {
	if b.Time > 0 {
		left, ok = max(b.Time-elapsed, 0), true
	}
	if b.Trials > 0 && trials > 0 {
		open := time.Duration(float64(elapsed) / float64(trials) * float64(max(b.Trials-trials, 0)))
		if !ok || open < left {
			left, ok = open, true
		}
	}
	return left, ok
}

const barWidth = 10

// bar draws the used share of the budget.
func (b Budget) bar(trials int, elapsed time.Duration) string {
	full := int(b.spent(trials, elapsed) * barWidth)
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", barWidth-full) + "]"
}
