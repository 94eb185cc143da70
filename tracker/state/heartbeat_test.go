package state

import (
	"strconv"
	"testing"
	"time"
)

// The tracker hears a thousand heartbeats a second at most, and three from each agent before it takes that for gone,
// whichever comes first.
func TestManyAgentsAreAskedForFewerHeartbeats(t *testing.T) {
	for agents, want := range map[int]time.Duration{0: 5 * time.Second, 5000: 5 * time.Second, 7000: 7 * time.Second, 50000: 10 * time.Second} {
		m := New(Config{HeartbeatInterval: 5 * time.Second, LeaseTimeout: 30 * time.Second})
		for i := range agents {
			m.sessions[strconv.Itoa(i)] = nil
		}
		if got := m.heartbeatInterval(); got != want {
			t.Errorf("%d agents are asked every %v, not %v", agents, got, want)
		}
	}
}
