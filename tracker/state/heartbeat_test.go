package state

import (
	"strconv"
	"testing"
	"time"
)

// TestManyAgentsAreAskedForFewerHeartbeats checks that all shards together receive at most a thousand heartbeats per
// second. The minimum of three per lease timeout from every agent at each shard takes precedence.
func TestManyAgentsAreAskedForFewerHeartbeats(t *testing.T) {
	for _, c := range []struct {
		agents, shards int
		want           time.Duration
	}{
		{0, 0, 5 * time.Second}, {5000, 0, 5 * time.Second}, {7000, 1, 7 * time.Second}, {50000, 0, 10 * time.Second},
		{1000, 4, 5 * time.Second}, {2000, 4, 8 * time.Second}, {50000, 16, 10 * time.Second},
	} {
		m := New(Config{HeartbeatInterval: 5 * time.Second, LeaseTimeout: 30 * time.Second, Shards: c.shards})
		for i := range c.agents {
			m.sessions[strconv.Itoa(i)] = nil
		}
		if got := m.heartbeatInterval(); got != c.want {
			t.Errorf("%d agents of %d shards are asked every %v, not %v", c.agents, c.shards, got, c.want)
		}
	}
}
