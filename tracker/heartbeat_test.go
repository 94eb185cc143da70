package tracker

import (
	"strconv"
	"testing"
	"time"
)

// The tracker hears a thousand heartbeats a second at most, and three from each agent before it takes that for gone,
// whichever comes first.
func TestManyAgentsAreAskedForFewerHeartbeats(t *testing.T) {
	for agents, want := range map[int]time.Duration{0: 5 * time.Second, 5000: 5 * time.Second, 7000: 7 * time.Second, 50000: 10 * time.Second} {
		tracker := &Tracker{cfg: Config{HeartbeatInterval: 5 * time.Second, LeaseTimeout: 30 * time.Second}, sessions: map[string]*agent{}}
		for i := range agents {
			tracker.sessions[strconv.Itoa(i)] = nil
		}
		if got := tracker.heartbeatInterval(); got != want {
			t.Errorf("%d agents are asked every %v, not %v", agents, got, want)
		}
	}
}
