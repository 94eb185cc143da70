package tracker_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

// search is a tuner that requests leases for a number of minutes. It returns the jobs it held at each minute.
func (f *timed) search(session string, minutes int) string {
	f.t.Helper()
	var lease *tilthv1.LeaseToken
	name := "-"
	var out []string
	for beat := range minutes * 12 {
		if lease == nil {
			r := must[*tilthv1.LeaseWorkResponse](f.t)(f.LeaseWork(f.t.Context(), &tilthv1.LeaseWorkRequest{Session: session}))
			if lease = r.GetLease(); lease != nil {
				name = r.GetSearch().GetJob().GetSpec().GetName()
			}
		}
		if beat%12 == 11 {
			out = append(out, name)
		}
		r := must[*tilthv1.HeartbeatResponse](f.t)(f.Heartbeat(f.t.Context(), &tilthv1.HeartbeatRequest{
			Session: session, Leases: []*tilthv1.LeaseToken{lease},
		}))
		if len(r.GetDropped()) > 0 {
			lease, name = nil, "-"
		}
		pass(5 * time.Second)
	}
	return strings.Join(out, " ")
}

func (f *timed) submitAs(owner, name string, priority uint32) {
	f.t.Helper()
	s := spec("conv")
	s.Name, s.Owner, s.Priority = name, owner, priority
	must[*tilthv1.SubmitJobResponse](f.t)(f.SubmitJob(f.t.Context(), &tilthv1.SubmitJobRequest{RequestId: name, Spec: s}))
}

// TestTunersAreSharedByTurns is a regression test: a tuner held a job until it was done, however long others waited.
func TestTunersAreSharedByTurns(t *testing.T) {
	for name, c := range map[string]struct {
		submit func(f *timed)
		want   string
	}{
		"a job that nobody waits for is held on": {
			submit: func(f *timed) { f.submitAs("ana", "a", 0) },
			want:   "a a a a a a a a",
		},
		"two owners": {
			submit: func(f *timed) { f.submitAs("ana", "a", 0); f.submitAs("eva", "e", 0) },
			want:   "a a e e a a e e",
		},
		"an owner's jobs by priority": {
			submit: func(f *timed) { f.submitAs("ana", "a", 10); f.submitAs("ana", "b", 30) },
			want:   "b b a a b b b b",
		},
		"an owner of two jobs and one of one": {
			submit: func(f *timed) { f.submitAs("ana", "a", 0); f.submitAs("ana", "b", 0); f.submitAs("eva", "e", 0) },
			want:   "a a e e b b e e",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newTimed(t)
				defer func() { f.stop() }()
				c.submit(f)
				if got := f.search(f.joinAs("tuner", tunerKind), 8); got != c.want {
					t.Errorf("it searched %s, want %s", got, c.want)
				}
			})
		})
	}
}

func TestTurnFromBeforeARestartEndsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimedAs(t, tracker.Config{SearchTurn: time.Minute})
		defer func() { f.stop() }()
		f.submitAs("ana", "a", 0)
		session := f.joinAs("tuner", tunerKind)
		lease := f.lease(session, 0)
		f.submitAs("eva", "e", 0)
		f.stop()
		f.start()
		if dropped := f.beat(session, 50*time.Second, lease); dropped != 0 {
			t.Error("its turn ended at once")
		}
		if dropped := f.beat(session, 20*time.Second, lease); dropped != 1 {
			t.Error("its turn goes on")
		}
		if got := f.lease(session, 0).GetSubject(); !strings.HasPrefix(got, "job-00000002-") {
			t.Errorf("then comes %s", got)
		}
	})
}
