package trials

import (
	"fmt"
	"time"
)

// Spent is what searching, building and measuring took, in seconds.
type Spent struct{ Search, Build, Measure float64 }

// Spent adds up what the trials so far took.
func (t *Tally) Spent() Spent {
	s := Spent{Search: t.SearchSeconds}
	for i := range t.Tasks {
		s.Build += t.Tasks[i].BuildSeconds
		s.Measure += t.Tasks[i].RunSeconds
	}
	return s
}

// Shares are how a job's time divides, as parts of 1.
type Shares struct {
	Search  float64 `json:"search"`
	Build   float64 `json:"build"`
	Measure float64 `json:"measure"`
	// Wait is what is left: starting, moving data, waiting for devices and for each other.
	Wait float64 `json:"wait"`
}

// Shares divides the time of a job. Where search, build and measurement overlap, on a farm, they are shares of what
// they took together, and nothing is left for waiting.
func (s Spent) Shares(elapsed time.Duration) Shares {
	busy := s.Search + s.Build + s.Measure
	total := max(elapsed.Seconds(), busy)
	if total == 0 {
		return Shares{Wait: 1}
	}
	return Shares{Search: s.Search / total, Build: s.Build / total, Measure: s.Measure / total, Wait: (total - busy) / total}
}

// String is the shares for people.
func (s Shares) String() string {
	return fmt.Sprintf("search %.0f %%, build %.0f %%, measure %.0f %%, wait %.0f %%", 100*s.Search, 100*s.Build, 100*s.Measure, 100*s.Wait)
}
