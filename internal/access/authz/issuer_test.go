package authz

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/access/oidc"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/lab/testkit/accesstest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const (
	aMethod = tilthv1.JobService_ListJobs_FullMethodName
	another = tilthv1.AdminService_BackupStore_FullMethodName
)

// issuerGate returns a gate that only accepts an issuer's tokens, and a function that returns headers of its clients.
func issuerGate(t *testing.T) (g *Gate, client func(name string) metadata.MD) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ca := filepath.Join(t.TempDir(), "issuer.crt")
	issuer, err := accesstest.NewIssuer(ca)
	check(err)
	t.Cleanup(issuer.Close)
	cfg, err := oidc.Parse(map[string]string{"issuer": issuer.URL(), "audience": accesstest.Audience, "ca": ca}, []string{"g=client"})
	check(err)
	verifier, err := oidc.Open(cfg, oidc.Options{})
	check(err)
	t.Cleanup(func() { check(verifier.Close()) })
	return New(Config{OIDC: verifier, Holdings: sessions{}}), func(name string) metadata.MD {
		token, err := issuer.Sign(issuer.Claims(name, "g"), nil)
		check(err)
		return bearer(token)
	}
}

// readKeys waits until a gate has read the issuer's keys.
func readKeys(t *testing.T, g *Gate, client func(name string) metadata.MD) {
	t.Helper()
	text := client("somebody").Get("authorization")[0][len("Bearer "):]
	if _, err := g.cfg.OIDC.Verify(t.Context(), text, time.Now()); err != nil {
		t.Fatal(err)
	}
}

func bearer(token string) metadata.MD { return metadata.Pairs("authorization", "Bearer "+token) }

func TestIssuerOnlyGateRefusesOthers(t *testing.T) {
	g, client := issuerGate(t)
	readKeys(t, g, client)
	for name, c := range map[string]struct {
		method string
		header metadata.MD
		want   codes.Code
		text   string
	}{
		"its token":        {aMethod, client("alice"), codes.OK, ""},
		"nothing":          {aMethod, metadata.MD{}, codes.Unauthenticated, "this tracker wants a token"},
		"a farm's token":   {aMethod, bearer("tilth_a_b"), codes.Unauthenticated, "nor a JWT signed by https://"},
		"two tokens":       {aMethod, metadata.Join(client("alice"), client("alice")), codes.Unauthenticated, "not one bearer token"},
		"a role it is not": {another, client("alice"), codes.PermissionDenied, "alice has the role client"},
	} {
		_, err := g.Admit(t.Context(), c.method, c.header)
		if status.Code(err) != c.want || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v, %q", name, err, c.want, c.text)
		}
	}
}

// TestIssuersTokenIsPassedOn checks that another tracker of the farm accepts a forwarded token.
func TestIssuersTokenIsPassedOn(t *testing.T) {
	g, client := issuerGate(t)
	want := client("alice").Get("authorization")[0]
	r := httptest.NewRequest(http.MethodGet, "/jobs", nil)
	r.Header.Set("Authorization", want)
	g.HTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if got, err := g.ForwardedAuthorization(r.Context()); got != want || err != nil {
			t.Errorf("passed on: %q, %v, want %q", got, err, want)
		}
		want = ""
	})).ServeHTTP(httptest.NewRecorder(), r)
	if want != "" {
		t.Error("the caller was not let in")
	}
}

// TestFloodOfTokensIsNotChecked checks that tokens from one address are only verified at the rate of its calls,
// because verification is expensive. Known callers and other addresses are not affected.
func TestFloodOfTokensIsNotChecked(t *testing.T) {
	g, client := issuerGate(t)
	readKeys(t, g, client)
	now := time.Now()
	g.cfg.Now, g.cfg.CallsPerSecond = func() time.Time { return now }, 1000
	call := func(addr string, header metadata.MD) error {
		_, err := g.Admit(from(addr), aMethod, header)
		return err
	}
	known := client("alice")
	if err := call("192.0.2.1:1", known); err != nil {
		t.Fatal(err)
	}
	if count, _ := admitted(from("192.0.2.1:1"), g, aMethod, bearer("e30.e30.e30"), burstSeconds*unauthenticatedCalls); count != 0 {
		t.Errorf("%d calls with a token that is none are let in", count)
	}
	late := client("bob")
	err := call("192.0.2.1:2", late)
	if _, is := wire.RetryAfter(err); !is || wire.Reason(err) != wire.ReasonRate || g.cfg.OIDC.IsCached(late.Get("authorization")[0][len("Bearer "):]) {
		t.Errorf("a good token that is new, from the same address: %v", err)
	}
	for name, err := range map[string]error{
		"a token that is known": call("192.0.2.1:2", known), "another address": call("192.0.2.2:1", client("carol")),
		"this machine": call("127.0.0.1:1", client("dora")),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	now = now.Add(time.Second)
	if err := call("192.0.2.1:2", late); err != nil {
		t.Errorf("a second later: %v", err)
	}
}
