package tracker_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

// timed is a tracker in a synctest bubble, called directly without gRPC.
type timed struct {
	*tracker.Tracker
	t    *testing.T
	path string
	cfg  tracker.Config
	stop func()
}

func newTimed(t *testing.T) *timed { return newTimedAs(t, tracker.Config{}) }

func newTimedAs(t *testing.T, cfg tracker.Config) *timed {
	t.Helper()
	f := &timed{t: t, path: t.TempDir(), cfg: cfg}
	f.start()
	return f
}

func (f *timed) start() {
	f.t.Helper()
	db := must[*bolt.DB](f.t)(bolt.Open(filepath.Join(f.path, "r.db"), bolt.Options{}))
	f.cfg.Store, f.cfg.ArtifactsDir = db, filepath.Join(f.path, "artifacts")
	f.cfg.LeaseTimeout, f.cfg.Grace = 30*time.Second, 2*time.Minute
	f.Tracker = must[*tracker.Tracker](f.t)(tracker.New(f.cfg))
	ran := make(chan error, 1)
	tr := f.Tracker
	go func() { ran <- tr.Run(f.t.Context()) }()
	f.stop = func() {
		tr.Close()
		if err := <-ran; err != nil {
			f.t.Error(err)
		}
		if err := db.Close(); err != nil {
			f.t.Error(err)
		}
	}
}

func (f *timed) submit() string {
	f.t.Helper()
	r := must[*tilthv1.SubmitJobResponse](f.t)(f.SubmitJob(f.t.Context(), &tilthv1.SubmitJobRequest{RequestId: "r", Spec: spec("conv")}))
	return r.GetJob().GetId()
}

func (f *timed) join(name string) string {
	f.t.Helper()
	s := agentSpec(name, tilthv1.AgentKind_AGENT_KIND_TUNER)
	return must[*tilthv1.JoinResponse](f.t)(f.Join(f.t.Context(), &tilthv1.JoinRequest{Spec: s})).GetSession()
}

func (f *timed) lease(session string, wait int) *tilthv1.LeaseToken {
	f.t.Helper()
	r := must[*tilthv1.LeaseWorkResponse](f.t)(f.LeaseWork(f.t.Context(), &tilthv1.LeaseWorkRequest{Session: session, Wait: seconds(wait)}))
	return r.GetLease()
}

// beat extends a session and its leases for a time, and returns the number of leases dropped by the last heartbeat.
func (f *timed) beat(session string, during time.Duration, leases ...*tilthv1.LeaseToken) (dropped int) {
	f.t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); {
		r := must[*tilthv1.HeartbeatResponse](f.t)(f.Heartbeat(f.t.Context(), &tilthv1.HeartbeatRequest{Session: session, Leases: leases}))
		dropped = len(r.GetDropped())
		pass(5 * time.Second)
	}
	return dropped
}

// pass waits for fake time.
func pass(d time.Duration) { <-time.After(d) }

func TestExpiredLeasesAreReassigned(t *testing.T) {
	for name, c := range map[string]struct {
		// live runs after the holder got its lease.
		live     func(f *timed, session string, lease *tilthv1.LeaseToken)
		restart  bool
		expired  bool
		sessions int // live sessions afterwards, of 2
	}{
		"silent agent": {
			live:    func(*timed, string, *tilthv1.LeaseToken) { pass(32 * time.Second) },
			expired: true, sessions: 0,
		},
		"agent that heartbeats its lease": {
			live:     func(f *timed, s string, l *tilthv1.LeaseToken) { f.beat(s, 3*time.Minute, l) },
			sessions: 1,
		},
		"agent that never heard of its lease": {
			live:    func(f *timed, s string, _ *tilthv1.LeaseToken) { f.beat(s, 11*time.Second) },
			expired: true, sessions: 2,
		},
		"agent that never heard of its lease, after a restart": {
			live:    func(f *timed, s string, _ *tilthv1.LeaseToken) { f.beat(s, 11*time.Second) },
			restart: true, expired: true, sessions: 2,
		},
		"answer that is on its way": {
			live:     func(f *timed, s string, _ *tilthv1.LeaseToken) { f.beat(s, 6*time.Second) },
			sessions: 2,
		},
		"agent that lists its lease no more": {
			live: func(f *timed, s string, l *tilthv1.LeaseToken) {
				f.beat(s, 6*time.Second, l)
				f.beat(s, 11*time.Second)
			},
			expired: true, sessions: 2,
		},
		"silent within the grace after a restart": {
			live:    func(*timed, string, *tilthv1.LeaseToken) { pass(118 * time.Second) },
			restart: true, sessions: 2,
		},
		"one heartbeat does not end the grace": {
			live: func(f *timed, s string, l *tilthv1.LeaseToken) {
				f.beat(s, time.Second, l)
				pass(110 * time.Second)
			},
			restart: true, sessions: 2,
		},
		"silent beyond the grace": {
			live:    func(*timed, string, *tilthv1.LeaseToken) { pass(122 * time.Second) },
			restart: true, expired: true, sessions: 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newTimed(t)
				defer func() { f.stop() }()
				f.submit()
				holder := f.join("holder")
				f.join("bystander")
				lease := f.lease(holder, 0)
				if c.restart {
					f.stop()
					f.start()
				}
				c.live(f, holder, lease)
				agents := must[*tilthv1.ListAgentsResponse](t)(f.ListAgents(t.Context(), &tilthv1.ListAgentsRequest{})).GetAgents()
				live := 0
				for _, a := range agents {
					if a.GetState() != tilthv1.AgentState_AGENT_STATE_GONE {
						live++
					}
				}
				if live != c.sessions {
					t.Errorf("%d sessions are live, want %d", live, c.sessions)
				}
				got := f.lease(f.join("heir"), 0)
				if expired := got != nil; expired != c.expired {
					t.Errorf("expired: %v, want %v", expired, c.expired)
				}
			})
		})
	}
}

func TestExpiredLeaseIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimed(t)
		defer func() { f.stop() }()
		f.submit()
		session := f.join("holder")
		lease := f.lease(session, 0)
		f.beat(session, 35*time.Second) // heartbeats without the lease
		if dropped := f.beat(session, time.Second, lease); dropped != 1 {
			t.Errorf("%d leases dropped, want 1", dropped)
		}
	})
}

func TestLongPollEndsEmptyWhenItsTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimed(t)
		defer func() { f.stop() }()
		session := f.join("tuner")
		begin := time.Now()
		if got := f.lease(session, 20); got != nil {
			t.Errorf("got %v", got)
		}
		if took := time.Since(begin); took != 20*time.Second {
			t.Errorf("waited %v", took)
		}
		// The waiter is gone, so new work waits for the next call.
		f.submit()
		if got := f.lease(session, 0); got.GetAttempt() != 1 {
			t.Errorf("got %v", got)
		}
	})
}
