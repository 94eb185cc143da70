package runner

import (
	"testing"
	"time"
)

func TestCandidateLimitGrowsWithWhatIsKnown(t *testing.T) {
	cases := map[string]struct {
		limits Limits
		best   float64
		want   time.Duration
	}{
		"nothing known":  {Limits{}, 0, 10 * time.Second},
		"small task":     {Limits{}, 1e-4, time.Second},
		"large task":     {Limits{}, 2, 40 * time.Second},
		"given":          {Limits{Candidate: time.Minute}, 1e-4, time.Minute},
		"given, unknown": {Limits{Candidate: 2 * time.Second}, 0, 2 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := Plan{BestSeconds: c.best, Limits: c.limits.withDefaults(c.best, false)}
			if got := p.candidateLimit() - 2*p.Limits.Budget - p.Limits.Patience; got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
