package gate

import (
	"net"
	"sync"
	"time"
)

// Bounds on the refusals of unknown callers that are written down.
const (
	spamWindow  = time.Minute
	spamPerHost = 20
	spamHosts   = 256
)

// spam counts refusals within a window, by host.
type spam struct {
	mu         sync.Mutex
	began      time.Time
	hosts      map[string]int
	suppressed int
}

// count counts one more. It says whether it is to be written down and, once after each window, how many were not.
func (s *spam) count(from string, now time.Time) (written bool, suppressed int) {
	host, _, err := net.SplitHostPort(from)
	if err != nil {
		host = from
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hosts == nil || now.Sub(s.began) >= spamWindow {
		suppressed = s.suppressed
		s.began, s.hosts, s.suppressed = now, map[string]int{}, 0
	}
	_, seen := s.hosts[host]
	if s.hosts[host] == spamPerHost || !seen && len(s.hosts) == spamHosts {
		s.suppressed++
		return false, suppressed
	}
	s.hosts[host]++
	return true, suppressed
}
