package tracker_test

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/tilth-dev/tilth/internal/access/oidc"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/lab/testkit/accesstest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

// issued is a tracker that also accepts tokens of an issuer.
type issued struct {
	*closed
	issuer *accesstest.Issuer
	passed atomic.Int64 // offset of the tracker's clock for tokens
	log    *bytes.Buffer
}

// newIssuer starts an issuer and returns it with a verifier. Three groups have roles.
func newIssuer(t *testing.T) (*accesstest.Issuer, *oidc.Verifier) {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "issuer.crt")
	issuer := must[*accesstest.Issuer](t)(accesstest.NewIssuer(ca))
	t.Cleanup(issuer.Close)
	cfg := must[oidc.Config](t)(oidc.Parse(map[string]string{"issuer": issuer.URL(), "audience": accesstest.Audience, "ca": ca},
		[]string{"farm-admins=admin", "ml-team=client", "boards=agent"}))
	verifier := must[*oidc.Verifier](t)(oidc.Open(cfg, oidc.Options{Ask: time.Nanosecond}))
	t.Cleanup(func() {
		if err := verifier.Close(); err != nil {
			t.Error(err)
		}
	})
	return issuer, verifier
}

// newIssued starts a farm with an issuer. The issuer has tokens of the client carol, the admin paula, the agent
// shelf, and a user whose groups have no role.
func newIssued(t *testing.T) *issued {
	t.Helper()
	c := &issued{closed: newClosed(t, false), log: &bytes.Buffer{}}
	c.stop()
	c.issuer, c.cfg.Security.OIDC = newIssuer(t)
	c.cfg.Now = func() time.Time { return time.Now().Add(time.Duration(c.passed.Load())) }
	c.cfg.Logger = slog.New(slog.NewTextHandler(c.log, nil))
	c.start()
	for name, group := range map[string]string{"carol": "ml-team", "paula": "farm-admins", "shelf": "boards", "nobody-in-particular": "cooks"} {
		c.issue(name, group)
	}
	return c
}

// issue writes a token of the issuer.
func (c *issued) issue(name, group string) {
	c.Helper()
	text, err := c.issuer.Sign(c.issuer.Claims(name, group), nil)
	c.check(err)
	c.tokens[name] = text
}

func (c *issued) list(name string) error {
	_, err := tilthv1.NewJobServiceClient(c.as(name)).ListJobs(c.Context(), &tilthv1.ListJobsRequest{})
	return err
}

func TestTokensOfAnIssuerAreTakenBesideOwnOnes(t *testing.T) {
	c := newIssued(t)
	job, err := c.submit("carol", "one")
	c.check(err)
	if got := job.GetSpec().GetOwner(); got != "carol" {
		t.Errorf("the job is %q's", got)
	}
	wantCode(t, "another client", c.cancel("alice", job.GetId()), codes.PermissionDenied, "belongs to")
	wantCode(t, "an admin", c.cancel("paula", job.GetId()), codes.OK, "")
	wantCode(t, "no role", c.list("nobody-in-particular"), codes.PermissionDenied, "nobody-in-particular is in no group that has a role here")
	_, err = c.join("carol", "board")
	wantCode(t, "a client who joins", err, codes.PermissionDenied, "carol has the role client")
	session, err := c.join("shelf", "board")
	c.check(err)
	_, err = tilthv1.NewAgentServiceClient(c.as("anna")).Heartbeat(t.Context(), &tilthv1.HeartbeatRequest{Session: session})
	wantCode(t, "another agent", err, codes.PermissionDenied, "")
	if code, text := c.ask("carol", "GET", "jobs/"+job.GetId(), ""); code != http.StatusOK || !strings.Contains(text, job.GetId()) {
		t.Errorf("in JSON: %d %s", code, text)
	}
	c.tokens["forged"] = c.tokens["carol"][:len(c.tokens["carol"])-8] + "AAAAAAAA"
	wantCode(t, "a forged one", c.list("forged"), codes.Unauthenticated, "signature is wrong")
	if code, text := c.ask("forged", "GET", "jobs", ""); code != http.StatusUnauthorized || !strings.Contains(text, "signature is wrong") {
		t.Errorf("a forged one in JSON: %d %s", code, text)
	}
}

// TestAuditLogNamesTheIssuerAndNoToken checks that the audit log has the subject and issuer, and that no log
// contains any part of a token.
func TestAuditLogNamesTheIssuerAndNoToken(t *testing.T) {
	c := newIssued(t)
	_, err := c.submit("carol", "one")
	c.check(err)
	_, err = c.join("carol", "board")
	wantCode(t, "Join", err, codes.PermissionDenied, "")
	_ = c.list("nobody-in-particular")
	c.tokens["forged"] = c.tokens["carol"] + "A"
	_ = c.list("forged")
	c.issuer.Drop("first")
	c.check(c.issuer.Rotate("second"))
	c.issue("dora", "ml-team")
	c.check(c.list("dora")) // rereads the keys
	wantCode(t, "a token by the key before", c.list("carol"), codes.Unauthenticated, "has given up")
	proofs := 0
	for _, e := range c.entries() {
		if e.Who == "carol" && e.Proof == "subject carol of "+c.issuer.URL() {
			proofs++
		}
	}
	if proofs != 2 {
		t.Errorf("%d lines of the audit log tell how carol proved who she is, want 2: %+v", proofs, c.entries())
	}
	c.stop()
	c.stop = func() {}
	text, err := os.ReadFile(c.path("audit.jsonl"))
	c.check(err)
	for name, token := range c.tokens {
		for _, part := range strings.Split(token, ".") {
			if len(part) > 20 && bytes.Contains(append(text, c.log.Bytes()...), []byte(part[:20])) && !strings.HasPrefix(part, "eyJhbGciOi") {
				t.Errorf("a log has a part of the token of %s", name)
			}
		}
	}
}

func TestStreamEndsWithItsIssuersToken(t *testing.T) {
	c := newIssued(t)
	job, err := c.submit("alice", "one")
	c.check(err)
	stream, err := tilthv1.NewJobServiceClient(c.as("carol")).WatchJob(t.Context(), &tilthv1.WatchJobRequest{JobId: job.GetId()})
	c.check(err)
	_, err = stream.Recv()
	c.check(err)
	c.passed.Store(int64(2 * time.Hour))
	c.check(c.cancel("alice", job.GetId()))
	_, err = stream.Recv()
	wantCode(t, "the next event", err, codes.Unauthenticated, "the token has expired: get another from "+c.issuer.URL())
	wantCode(t, "the next call", c.list("carol"), codes.Unauthenticated, "has expired")
}

func TestSessionEndsWithItsIssuersToken(t *testing.T) {
	c := newIssued(t)
	v := c.visitor()
	if _, _, text := v.do(http.MethodGet, "/signin", nil); !strings.Contains(text, "those of "+c.issuer.URL()+" are taken, too") {
		t.Errorf("the form is\n%s", text)
	}
	if code, at, text := v.signIn("carol", "/devices"); code != http.StatusOK || at != "/devices" || !strings.Contains(text, "carol, client") {
		t.Errorf("carol signs in: %d at %s\n%s", code, at, text)
	}
	for name, want := range map[string]int{"shelf": http.StatusForbidden, "nobody-in-particular": http.StatusForbidden} {
		if code, _, _ := c.visitor().signIn(name, "/"); code != want {
			t.Errorf("%s signs in: %d, want %d", name, code, want)
		}
	}
	c.passed.Store(int64(2 * time.Hour)) // the session alone would last twelve hours
	if _, at, _ := v.do(http.MethodGet, "/devices", nil); !strings.HasPrefix(at, "/signin") {
		t.Errorf("after the token's end the browser sees %s", at)
	}
	c.wantAudit("Page.SignIn carol OK")
}

// TestKnownCallersSurviveAnIssuerOutage checks that callers with unknown keys must retry while the issuer is
// unavailable, because its keys may have changed, and that others are admitted.
func TestKnownCallersSurviveAnIssuerOutage(t *testing.T) {
	c := newIssued(t)
	c.check(c.list("carol"))
	c.issuer.SetHandler(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusBadGateway) })
	c.check(c.issuer.Rotate("second"))
	c.issue("dora", "ml-team")
	err := c.list("dora")
	wantCode(t, "a token by the next key", err, codes.Unavailable, "the issuer's keys cannot be read now: try again later")
	if got := wire.Reason(err); got != wire.ReasonIssuer {
		t.Errorf("the reason is %q", got)
	}
	c.check(c.list("carol"))
	c.check(c.list("alice"))
	form := url.Values{"form_token": {c.visitor().formToken("/signin")}, "token": {c.tokens["dora"]}}
	if code, _, _ := c.visitor().do(http.MethodPost, "/signin", form); code != http.StatusServiceUnavailable {
		t.Errorf("dora signs in: %d", code)
	}
	c.issuer.SetHandler(nil)
	for err := c.list("dora"); err != nil; err = c.list("dora") { // until the keys are read
		if wire.Reason(err) != wire.ReasonIssuer {
			t.Fatal(err)
		}
	}
}

// TestCallThatNeedsTheIssuersKeysHoldsUpNoOther checks that a call with an unknown key blocks no other call of its
// connection, and succeeds once the key is read.
func TestCallThatNeedsTheIssuersKeysHoldsUpNoOther(t *testing.T) {
	c := newIssued(t)
	asked, goOn := make(chan struct{}, 100), make(chan struct{})
	answer := sync.OnceFunc(func() { close(goOn) })
	defer answer()
	c.issuer.SetHandler(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-goOn
		c.issuer.Serve(w, r)
	})
	c.check(c.issuer.Rotate("second"))
	c.issue("dora", "ml-team")
	conn, ended := c.as("dora"), make(chan error, 1)
	go func() {
		_, err := tilthv1.NewJobServiceClient(conn).ListJobs(t.Context(), &tilthv1.ListJobsRequest{})
		ended <- err
	}()
	<-asked
	_, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
	c.check(err)
	answer()
	if err := <-ended; err != nil {
		t.Errorf("the call by the next key: %v", err)
	}
}

// TestShardsAndStandbysTakeTokensOfAnIssuer checks that trackers with shards or on standby authenticate like a single
// tracker.
func TestShardsAndStandbysTakeTokensOfAnIssuer(t *testing.T) {
	issuer, verifier := newIssuer(t)
	token := must[string](t)(issuer.Sign(issuer.Claims("carol", "ml-team"), nil))
	f := newSharded(t, tracker.Config{Security: tracker.Security{OIDC: verifier}})
	_, err := f.jobs.ListOwners(t.Context(), &tilthv1.ListOwnersRequest{})
	wantCode(t, "nobody in particular", err, codes.Unauthenticated, "wants a token")
	_, err = f.jobs.ListOwners(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token), &tilthv1.ListOwnersRequest{})
	wantCode(t, "a client", err, codes.OK, "")

	rpc, web := must[net.Listener](t)(tracker.Listen("127.0.0.1:0")), must[net.Listener](t)(tracker.Listen("127.0.0.1:0"))
	standby := tracker.NewHost(tracker.HostConfig{
		Security: tracker.Security{OIDC: verifier}, Shards: 1, Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	})
	go func() { _ = standby.Serve(t.Context(), rpc, web) }()
	for with, want := range map[string]int{"": http.StatusUnauthorized, "Bearer " + token: http.StatusOK} {
		r := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+web.Addr().String()+"/metrics", nil))
		if with != "" {
			r.Header.Set("Authorization", with)
		}
		transport := &http.Transport{DisableKeepAlives: true}
		answer, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("metrics of a tracker that stands by, with %q: %d, want %d", with, answer.StatusCode, want)
		}
	}
}
