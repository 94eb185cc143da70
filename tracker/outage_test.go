package tracker_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

// crowd is a farm of builders, each with a lease.
type crowd struct {
	*timed
	job      string
	sessions []string
	leases   []*tilthv1.LeaseToken
}

func newCrowd(t *testing.T, n int, cfg tracker.Config) *crowd {
	t.Helper()
	c := &crowd{timed: newTimedAs(t, cfg)}
	c.job = c.submitOf("ana", "job", 0, n)
	for i := range n {
		session := c.joinAs(fmt.Sprint("builder ", i), builderKind)
		c.sessions = append(c.sessions, session)
		c.leases = append(c.leases, c.build(session).GetLease())
	}
	return c
}

// beatFrom sends heartbeats of the builders from index first on, for a duration.
func (c *crowd) beatFrom(first int, during time.Duration) (dropped int) {
	c.t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); pass(5 * time.Second) {
		for i := first; i < len(c.sessions); i++ {
			r := must[*tilthv1.HeartbeatResponse](c.t)(c.Heartbeat(c.t.Context(), &tilthv1.HeartbeatRequest{
				Session: c.sessions[i], Leases: c.leases[i : i+1],
			}))
			dropped += len(r.GetDropped())
		}
	}
	return dropped
}

// gone counts the builders with invalid sessions.
func (c *crowd) gone() (n int) {
	c.t.Helper()
	for _, a := range c.list().GetAgents() {
		if a.GetState() == tilthv1.AgentState_AGENT_STATE_GONE {
			n++
		}
	}
	return n
}

func (c *crowd) list() *tilthv1.ListAgentsResponse {
	c.t.Helper()
	return must[*tilthv1.ListAgentsResponse](c.t)(c.ListAgents(c.t.Context(), &tilthv1.ListAgentsRequest{Kind: builderKind}))
}

func TestFewSilentAgentsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 10, tracker.Config{})
		defer func() { c.stop() }()
		c.beatFrom(4, 40*time.Second)
		if n := c.gone(); n != 4 || c.list().GetOutage() != nil {
			t.Errorf("%d are gone, want 4; outage %v", n, c.list().GetOutage())
		}
	})
}

func TestMostAgentsSilentIsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 10, tracker.Config{})
		defer func() { c.stop() }()
		began := time.Now()
		c.beatFrom(2, 6*time.Second) // their heartbeats are staggered
		c.beatFrom(8, 90*time.Second)
		o := c.list().GetOutage()
		if n := c.gone(); n != 0 || o.GetSilent() < 8 || !o.GetUntil().AsTime().After(o.GetSince().AsTime()) {
			t.Fatalf("%d are gone, want none; outage %v", n, o)
		}
		if got := must[*tilthv1.GetJobResponse](t)(c.GetJob(t.Context(), &tilthv1.GetJobRequest{JobId: c.job})); got.GetOutage() == nil {
			t.Error("nothing of it is seen at the job")
		}
		if dropped := c.beatFrom(0, 10*time.Second); dropped != 0 {
			t.Errorf("%d leases were dropped after %v of silence", dropped, time.Since(began))
		}
		if o := c.list().GetOutage(); o != nil {
			t.Errorf("they are back, and the outage goes on: %v", o)
		}
	})
}

func TestOutagesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 10, tracker.Config{MaxAttempts: 1})
		defer func() { c.stop() }()
		c.beatFrom(8, 155*time.Second)
		if n := c.gone(); n != 8 || c.list().GetOutage() != nil {
			t.Errorf("%d are gone, want 8; outage %v", n, c.list().GetOutage())
		}
		if letters := c.jobOf(c.job).GetDeadLetters(); len(letters) != 0 {
			t.Errorf("batches paid for it: %v", letters)
		}
		for i := 8; i < 10; i++ {
			if c.build(c.sessions[i]) == nil {
				t.Error("what the lost ones held is given to nobody")
			}
		}
	})
}

// TestTrackerThatStoodStillExpiresNothing covers a stopped process and a suspended machine, whose clock jumps
// between two ticks.
func TestTrackerThatStoodStillExpiresNothing(t *testing.T) {
	for name, jump := range map[string]time.Duration{"an hour": time.Hour, "sixteen seconds": 16 * time.Second, "backwards": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var jumped atomic.Int64
				// One builder and the tuner are too few for an outage, which would also expire nothing.
				c := newCrowd(t, 1, tracker.Config{Clock: func() time.Time { return time.Now().Add(time.Duration(jumped.Load())) }})
				defer func() { c.stop() }()
				c.beatFrom(0, 20*time.Second)
				jumped.Store(int64(jump))
				pass(100 * time.Second)
				if n := c.gone(); n != 0 {
					t.Errorf("%d are gone", n)
				}
				if dropped := c.beatFrom(0, time.Minute); dropped != 0 {
					t.Errorf("%d leases were dropped", dropped)
				}
			})
		})
	}
}

// TestWallClockJumpsExpireNoLease checks that changes of the wall clock, by an hour or a year, expire nothing.
func TestWallClockJumpsExpireNoLease(t *testing.T) {
	for name, jump := range map[string]time.Duration{"forwards": 24 * time.Hour, "backwards": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var jumped atomic.Int64
				c := newCrowd(t, 2, tracker.Config{Now: func() time.Time { return time.Now().Add(time.Duration(jumped.Load())).Round(0) }})
				defer func() { c.stop() }()
				jumped.Store(int64(jump))
				pass(20 * time.Second)
				if dropped := c.beatFrom(0, time.Minute); dropped != 0 || c.gone() != 0 {
					t.Errorf("%d leases were dropped, %d agents are gone", dropped, c.gone())
				}
				pass(35 * time.Second)
				if c.gone() != 2 {
					t.Errorf("%d agents are gone after a silence, want 2", c.gone())
				}
			})
		})
	}
}
