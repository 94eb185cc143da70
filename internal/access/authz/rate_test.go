package authz

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// sessions is the number of sessions of each identity.
type sessions map[string]int

func (sessions) JobOwner(string) (Owner, bool, error) { return Owner{}, false, nil }
func (sessions) Session(string) (Session, bool)       { return Session{}, false }
func (s sessions) Sessions(identity string) int       { return s[identity] }

// lines counts the lines written.
type lines struct{ count int }

func (l *lines) Write(b []byte) (int, error) {
	l.count++
	return len(b), nil
}
func (*lines) Close() error { return nil }

// from returns a call's context with a peer address.
func from(addr string) context.Context {
	a, _ := net.ResolveTCPAddr("tcp", addr)
	return peer.NewContext(context.Background(), &peer.Peer{Addr: a})
}

// limited returns a gate that admits ten calls per second and caller, with a settable clock.
func limited(t *testing.T) (g *Gate, header metadata.MD, now *time.Time) {
	g, token := closedGate(t)
	now = new(time.Time)
	*now = time.Now()
	g.cfg.Now, g.cfg.CallsPerSecond, g.cfg.Holdings = func() time.Time { return *now }, 10, sessions{}
	return g, metadata.Pairs("authorization", "Bearer "+token), now
}

func admitted(ctx context.Context, g *Gate, method string, header metadata.MD, n int) (count int, last error) {
	for range n {
		if _, err := g.Admit(ctx, method, header); err == nil {
			count++
		} else {
			last = err
		}
	}
	return count, last
}

func TestCallsOfAnIdentityAreBounded(t *testing.T) {
	g, root, now := limited(t)
	count, err := admitted(from("192.0.2.1:1"), g, tilthv1.JobService_GetJob_FullMethodName, root, 100)
	if count != 20 || status.Code(err) != codes.ResourceExhausted || wire.Reason(err) != wire.ReasonRate {
		t.Errorf("%d of 100 calls at once are let in, then %v", count, err)
	}
	wait, is := wire.RetryAfter(err)
	if !is || wait <= 0 || wait > 100*time.Millisecond {
		t.Errorf("it is to be tried again after %v, %v", wait, is)
	}
	*now = now.Add(wait)
	if count, _ := admitted(from("192.0.2.2:1"), g, tilthv1.JobService_GetJob_FullMethodName, root, 100); count != 1 {
		t.Errorf("after that %d calls are let in", count)
	}
	*now = now.Add(time.Hour)
	if count, _ := admitted(from("192.0.2.1:1"), g, tilthv1.JobService_GetJob_FullMethodName, root, 100); count != 20 {
		t.Errorf("after an hour %d calls are let in at once", count)
	}
}

// TestSessionsAddToTheCallsOfTheirIdentity checks the limit of shared tokens, which may have ten thousand agents.
func TestSessionsAddToTheCallsOfTheirIdentity(t *testing.T) {
	g, root, now := limited(t)
	g.cfg.Holdings = sessions{"root": 100}
	_, _ = admitted(from("192.0.2.1:1"), g, tilthv1.JobService_GetJob_FullMethodName, root, 20)
	*now = now.Add(time.Second)
	if count, _ := admitted(from("192.0.2.1:1"), g, tilthv1.JobService_GetJob_FullMethodName, root, 20_000); count < 5000 || count > 10_100 {
		t.Errorf("%d calls are let in", count)
	}
}

func TestAuditedCallsHaveALowerRateLimit(t *testing.T) {
	g, root, _ := limited(t)
	g.cfg.CallsPerSecond = 1e6
	if count, err := admitted(from("192.0.2.1:1"), g, tilthv1.JobService_CancelJob_FullMethodName, root, 5000); count != 600 || wire.Reason(err) != wire.ReasonRate {
		t.Errorf("%d of 5000 calls are let in, then %v", count, err)
	}
	if count, err := admitted(from("192.0.2.1:1"), g, tilthv1.JobService_GetJob_FullMethodName, root, 5000); count != 5000 {
		t.Errorf("%d of 5000 other calls are let in, then %v", count, err)
	}
}

// TestStrangersAreBoundedByTheirAddress checks that authenticated callers from the same address have a separate
// limit.
func TestStrangersAreBoundedByTheirAddress(t *testing.T) {
	g, root, _ := limited(t)
	if count, err := admitted(from("192.0.2.1:1"), g, healthv1.Health_Check_FullMethodName, nil, 1000); count != 100 || wire.Reason(err) != wire.ReasonRate {
		t.Errorf("%d of 1000 calls are let in, then %v", count, err)
	}
	if count, err := admitted(from("192.0.2.1:1"), g, tilthv1.JobService_GetJob_FullMethodName, root, 10); count != 10 {
		t.Errorf("%d of 10 calls with a token are let in: %v", count, err)
	}
	if count, _ := admitted(from("127.0.0.1:1"), g, healthv1.Health_Check_FullMethodName, nil, 1000); count != 1000 {
		t.Errorf("%d of 1000 calls of this machine are let in", count)
	}
	all := 0
	for i := range 1000 {
		n, _ := admitted(from(fmt.Sprintf("[2001:db8::%x]:1", i+1)), g, healthv1.Health_Check_FullMethodName, nil, 1)
		all += n
	}
	if all != 100 {
		t.Errorf("%d of 1000 calls of one host's addresses are let in", all)
	}
}

// TestAttemptsToSignInAreBoundedByTheHost checks that sign-in attempts on the page are limited per host, like calls
// with tokens.
func TestAttemptsToSignInAreBoundedByTheHost(t *testing.T) {
	g, _, _ := limited(t)
	tried := map[codes.Code]int{}
	for i := range 1000 {
		r := httptest.NewRequest(http.MethodPost, SignInPath, nil)
		r.RemoteAddr = fmt.Sprintf("[2001:db8::%x]:1", i+1)
		tried[status.Code(g.SignIn(httptest.NewRecorder(), r, "guess"))]++
	}
	if tried[codes.Unauthenticated] != 20 || tried[codes.ResourceExhausted] != 980 {
		t.Errorf("1000 attempts from addresses of one host end with %v", tried)
	}
	if count, err := admitted(from("[2001:db8::1]:1"), g, healthv1.Health_Check_FullMethodName, nil, 1); count != 0 || wire.Reason(err) != wire.ReasonRate {
		t.Errorf("after that %d more calls that prove nothing are let in, then %v", count, err)
	}
}

// TestAuditedRefusalsPerCallerAreBounded is a regression test: a reader rotated the whole audit log out in minutes.
func TestAuditedRefusalsPerCallerAreBounded(t *testing.T) {
	g, _, now := limited(t)
	written := &lines{}
	g.cfg.Audit = access.NewAuditLog(written, g.cfg.Logger)
	c := &call{verb: "JobService.CancelJob", caller: caller{proved: true, from: "192.0.2.1:1"}}
	c.caller.Name = "reader"
	refuse := func(n int) {
		for range n {
			g.refused(c, nil, status.Error(codes.PermissionDenied, "no"))
		}
	}
	refuse(10_000)
	if written.count != knownRefusals {
		t.Errorf("%d of 10000 refusals are written, want %d", written.count, knownRefusals)
	}
	*now = now.Add(refusalWindow)
	c.rule = &tilthv1.Call{Audit: tilthv1.Audit_AUDIT_REQUIRED}
	g.done(c, nil, nil, nil)
	if written.count != knownRefusals+2 {
		t.Errorf("after that %d lines are written by a call, want the call's, and one of how many were not", written.count-knownRefusals)
	}
}

func TestRateBucketsAreBounded(t *testing.T) {
	var r rates
	now := time.Now()
	for i := range 3 * maxBuckets {
		r.take(bucketKey{who: fmt.Sprint(i)}, now, perSecond(1), nil)
	}
	if len(r.buckets) > maxBuckets {
		t.Errorf("%d are remembered", len(r.buckets))
	}
}
