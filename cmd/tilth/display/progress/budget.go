package progress

import (
	"strings"
	"time"
)

// Budget is what a job may spend; zero values are no limit.
type Budget struct {
	Trials int
	Time   time.Duration
}

// spent is the share of the budget that is used up, between 0 and 1.
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

// left is how long the budget lasts if trials go on to come as they did so far; ok is false where that cannot be told
// yet.
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

// bar draws the share of the budget that is used up.
func (b Budget) bar(trials int, elapsed time.Duration) string {
	full := int(b.spent(trials, elapsed) * barWidth)
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", barWidth-full) + "]"
}
