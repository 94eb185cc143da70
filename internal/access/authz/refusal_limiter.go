package authz

import (
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/internal/access"
)

// Bounds on the refusals logged within a window: per host of unauthenticated callers, and per authenticated caller.
const (
	refusalWindow                   = time.Minute
	strangerRefusals, strangerHosts = 20, 256
	knownRefusals, knownCallers     = 60, 1024
)

// refusalLimiter limits the logged refusals per caller and window.
type refusalLimiter struct {
	perKey, keys int
	whose        string

	mu         sync.Mutex
	began      time.Time
	counts     map[string]int
	suppressed int
}

// count counts a refusal. written reports whether to log it; suppressed is the number of unlogged refusals of the
// previous window, returned once.
func (s *refusalLimiter) count(key string, now time.Time) (written bool, suppressed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	suppressed = s.rollWindow(now)
	_, seen := s.counts[key]
	if s.counts[key] == s.perKey || !seen && len(s.counts) == s.keys {
		s.suppressed++
		return false, suppressed
	}
	s.counts[key]++
	return true, suppressed
}

// over returns the number of unlogged refusals of a finished window, once.
func (s *refusalLimiter) over(now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rollWindow(now)
}

// rollWindow starts the next window if the current one is over. The lock must be held.
func (s *refusalLimiter) rollWindow(now time.Time) (suppressed int) {
	if s.counts == nil || now.Sub(s.began) >= refusalWindow {
		suppressed = s.suppressed
		s.began, s.counts, s.suppressed = now, map[string]int{}, 0
	}
	return suppressed
}

// entry returns the audit entry about suppressed refusals.
func (s *refusalLimiter) entry(suppressed int, now time.Time) access.AuditEntry {
	return access.AuditEntry{
		Time: now.UTC(), Verb: "refusals", Result: codes.ResourceExhausted.String(),
		Message: fmt.Sprintf("%d refusals %s were not written down", suppressed, s.whose),
	}
}

// written reports whether to log a refusal, and logs the number of refusals suppressed before.
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

// logSuppressed logs the number of suppressed refusals once their window is over, if no refusal has done so since.
func (g *Gate) logSuppressed() {
	now := g.cfg.Now()
	for _, s := range []*refusalLimiter{&g.strangers, &g.known} {
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
