package tracker_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

func TestEndWaitEndsTheNamedWait(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	session, other := f.join("a", tilthv1.AgentKind_AGENT_KIND_TUNER), f.join("b", tilthv1.AgentKind_AGENT_KIND_TUNER)
	end := func(session, name string) bool {
		t.Helper()
		return must[*tilthv1.EndWaitResponse](t)(f.agents.EndWait(t.Context(), &tilthv1.EndWaitRequest{Session: session, Name: name})).GetEnded()
	}
	wait := func(session, name string) <-chan *tilthv1.LeaseWorkResponse {
		answer := make(chan *tilthv1.LeaseWorkResponse, 1)
		go func() {
			r, err := f.agents.LeaseWork(t.Context(), &tilthv1.LeaseWorkRequest{Session: session, Name: name, Wait: durationpb.New(time.Minute)})
			if err != nil {
				t.Errorf("the request of %q: %v", name, err)
			}
			answer <- r
		}()
		return answer
	}
	nameless, first, second := wait(session, ""), wait(session, "1"), wait(session, "2")
	for _, wrong := range [][2]string{{session, "3"}, {session, ""}, {other, "1"}} {
		if end(wrong[0], wrong[1]) {
			t.Errorf("EndWait(%q) ended a request that does not exist", wrong)
		}
	}
	for !end(session, "1") { // until the wait has started
		time.Sleep(time.Millisecond)
	}
	if r := <-first; r.GetLease() != nil {
		t.Errorf("the ended request got %v", r)
	}
	if end(session, "1") {
		t.Error("the second EndWait found the request again")
	}
	f.submit("a", spec("conv"))
	f.submit("b", spec("conv"))
	if a, b := <-nameless, <-second; a.GetLease() == nil || b.GetLease() == nil {
		t.Errorf("the other requests got %v and %v, want leases", a, b)
	}
	_, err := f.agents.EndWait(t.Context(), &tilthv1.EndWaitRequest{Session: "void", Name: "1"})
	wantCode(t, "an unknown session", err, codes.NotFound, "")
}
