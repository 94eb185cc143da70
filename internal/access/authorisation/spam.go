package authorisation

import (
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/internal/access/audit"
)

// Bounds on the refusals that are written down within a window: of each stranger's host, and of each caller who is
// known.
const (
	spamWindow                      = time.Minute
	strangerRefusals, strangerHosts = 20, 256
	knownRefusals, knownCallers     = 60, 1024
)

// spam counts refusals within a window, by who is refused.
type spam struct {
	perKey, keys int
	whose        string

	mu         sync.Mutex
	began      time.Time
	counts     map[string]int
	suppressed int
}

// count counts one more. It says whether it is to be written down and, once after each window, how many were not.
func (s *spam) count(key string, now time.Time) (written bool, suppressed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	suppressed = s.turn(now)
	_, seen := s.counts[key]
	if s.counts[key] == s.perKey || !seen && len(s.counts) == s.keys {
		s.suppressed++
		return false, suppressed
	}
	s.counts[key]++
	return true, suppressed
}

// over says how many refusals were not written down in a window that is over; once.
func (s *spam) over(now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn(now)
}

// turn begins another window when it is time. The caller holds the lock.
func (s *spam) turn(now time.Time) (suppressed int) {
	if s.counts == nil || now.Sub(s.began) >= spamWindow {
		suppressed = s.suppressed
		s.began, s.counts, s.suppressed = now, map[string]int{}, 0
	}
	return suppressed
}

// entry is the line about refusals that were not written down.
func (s *spam) entry(suppressed int, now time.Time) audit.Entry {
	return audit.Entry{
		Time: now.UTC(), Verb: "refusals", Result: codes.ResourceExhausted.String(),
		Message: fmt.Sprintf("%d refusals %s were not written down", suppressed, s.whose),
	}
}

// written says whether a refusal is to be written down, and tells of those that were not.
func (g *Gate) written(c *call) bool {
	s, key := &g.known, c.caller.Name
	if !c.caller.proved {
		s, key = &g.strangers, portless(c.caller.from)
	}
	now := g.cfg.Now()
	is, suppressed := s.count(key, now)
	if suppressed > 0 {
		g.cfg.Audit.Add(s.entry(suppressed, now))
	}
	return is
}

// tellSuppressed tells of refusals that were not written down, if their time is over and nobody was refused since.
func (g *Gate) tellSuppressed() {
	now := g.cfg.Now()
	for _, s := range []*spam{&g.strangers, &g.known} {
		if n := s.over(now); n > 0 {
			g.cfg.Audit.Add(s.entry(n, now))
		}
	}
}

func portless(from string) string {
	if host, _, err := net.SplitHostPort(from); err == nil {
		return host
	}
	return from
}
