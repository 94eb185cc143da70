package progress

import (
	"fmt"
	"time"
)

// Spent holds the seconds spent on searching, building and measuring.
type Spent struct{ Search, Build, Measure float64 }

// Spent returns the time spent on the trials so far.
func (t *Tally) Spent() Spent {
	s := Spent{Search: t.SearchSeconds}
	for i := range t.Tasks {
		s.Build += t.Tasks[i].BuildSeconds
		s.Measure += t.Tasks[i].RunSeconds
	}
	return s
}

// Shares divides a job's time into parts of 1.
type Shares struct {
	Search  float64 `json:"search"`
	Build   float64 `json:"build"`
	Measure float64 `json:"measure"`
	// Wait is the rest: starting, transferring data, and waiting for devices and for each other.
	Wait float64 `json:"wait"`
}

// Shares divides the elapsed time. If search, build and measurement overlap, as on a farm, shares are
// relative to their sum, without waiting.
func (s Spent) Shares(elapsed time.Duration) Shares {
	busy := s.Search + s.Build + s.Measure
	total := max(elapsed.Seconds(), busy)
	if total == 0 {
		return Shares{Wait: 1}
	}
	return Shares{Search: s.Search / total, Build: s.Build / total, Measure: s.Measure / total, Wait: (total - busy) / total}
}

// String formats the shares for people.
func (s Shares) String() string {
	return fmt.Sprintf("search %.0f %%, build %.0f %%, measure %.0f %%, wait %.0f %%", 100*s.Search, 100*s.Build, 100*s.Measure, 100*s.Wait)
}
