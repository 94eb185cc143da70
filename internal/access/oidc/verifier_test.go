package oidc

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"go.uber.org/goleak"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/lab/testkit/accesstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// farm is an issuer with a verifier of its tokens.
type farm struct {
	testing.TB
	*accesstest.Issuer
	*Verifier
	log *logged
}

// logged is a log that is safe for concurrent use.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// often makes the verifier ask for keys whenever a token's key is unknown, and only then.
var often = Options{Refresh: time.Hour, Retry: time.Hour, Ask: time.Nanosecond}

func newFarm(t testing.TB, o Options, settings ...string) *farm {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "issuer.crt")
	issuer, err := accesstest.NewIssuer(ca)
	check(t, err)
	t.Cleanup(issuer.Close)
	named := map[string]string{"issuer": issuer.URL(), "audience": accesstest.Audience, "ca": ca}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		named[name] = value
	}
	cfg, err := Parse(named, []string{"farm-admins=admin", "cn=ml,ou=x=client", "boards=agent"})
	check(t, err)
	f := &farm{TB: t, Issuer: issuer, log: &logged{}}
	o.Logger = slog.New(slog.NewTextHandler(f.log, nil))
	f.Verifier, err = Open(cfg, o)
	check(t, err)
	t.Cleanup(func() { check(t, f.Verifier.Close()) })
	return f
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sign returns a token with the usual claims, changed by other; nil removes a claim.
func (f *farm) sign(other map[string]any, headers map[jose.HeaderKey]any) string {
	f.Helper()
	claims := f.Claims("alice", "cn=ml,ou=x")
	maps.Copy(claims, other)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	text, err := f.Issuer.Sign(claims, headers)
	check(f, err)
	return text
}

// wantError checks that an error contains want, but no part of the token.
func wantError(t testing.TB, err error, token, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want one with %q", err, want)
		return
	}
	for _, part := range strings.Split(token, ".") {
		if len(part) > 16 && strings.Contains(err.Error(), part) {
			t.Errorf("the error %q has a part of the token", err)
		}
	}
}

func TestTokenSaysWhoCalls(t *testing.T) {
	f := newFarm(t, often)
	got, err := f.Verify(t.Context(), f.sign(nil, nil), time.Now())
	check(t, err)
	if want := (access.Identity{Name: "alice", Role: access.Client, Proof: "subject alice of " + f.URL()}); got.Identity != want {
		t.Errorf("the token is %+v's, want %+v's", got.Identity, want)
	}
}

func TestClaimsAreReadAsConfigured(t *testing.T) {
	realm := map[string]any{"roles": []any{7, "boards", "others"}}
	for name, c := range map[string]struct {
		settings []string
		claims   map[string]any
		want     access.Identity // without proof; no name = refused
		refused  string
	}{
		"the first grant counts":       {nil, map[string]any{"groups": []string{"boards", "farm-admins"}}, access.Identity{Name: "alice", Role: access.Admin}, ""},
		"one group as a text":          {nil, map[string]any{"groups": "boards"}, access.Identity{Name: "alice", Role: access.Agent}, ""},
		"a claim within another":       {[]string{"role-claim=realm_access.roles"}, map[string]any{"realm_access": realm}, access.Identity{Name: "alice", Role: access.Agent}, ""},
		"a claim with dots":            {[]string{"role-claim=https://x.test/roles"}, map[string]any{"https://x.test/roles": "boards"}, access.Identity{Name: "alice", Role: access.Agent}, ""},
		"a prefix":                     {[]string{"owner-prefix=sso:"}, nil, access.Identity{Name: "sso:alice", Role: access.Client}, ""},
		"a verified address":           {[]string{"owner-claim=email"}, map[string]any{"email": "a@x.test", "email_verified": true}, access.Identity{Name: "a@x.test", Role: access.Client}, ""},
		"an address that is not":       {[]string{"owner-claim=email"}, map[string]any{"email": "a@x.test", "email_verified": false}, access.Identity{}, "has not verified"},
		"an address that may not be":   {[]string{"owner-claim=email"}, map[string]any{"email": "a@x.test"}, access.Identity{}, "has not verified"},
		"no group":                     {nil, map[string]any{"groups": nil}, access.Identity{}, "alice is in no group that has a role here"},
		"an unknown group":             {nil, map[string]any{"groups": []string{"admin", "client"}}, access.Identity{}, "in no group"},
		"a group in another's letters": {nil, map[string]any{"groups": []string{"Boards"}}, access.Identity{}, "in no group"},
		"no name":                      {[]string{"owner-claim=name"}, nil, access.Identity{}, "lacks the claim name"},
		"a number for a name":          {[]string{"owner-claim=name"}, map[string]any{"name": 7}, access.Identity{}, "lacks the claim name"},
		"a name with a line's end":     {[]string{"owner-claim=name"}, map[string]any{"name": "a\nb"}, access.Identity{}, "printable ASCII"},
		"a long name":                  {[]string{"owner-claim=name"}, map[string]any{"name": strings.Repeat("a", 129)}, access.Identity{}, "at most 128 bytes"},
		"no subject":                   {[]string{"owner-claim=name"}, map[string]any{"name": "a", "sub": nil}, access.Identity{}, "subject"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFarm(t, often, c.settings...)
			token := f.sign(c.claims, nil)
			got, err := f.Verify(t.Context(), token, time.Now())
			if c.refused != "" {
				wantError(t, err, token, c.refused)
				if is := strings.Contains(c.refused, "in no group"); errors.Is(err, ErrNoRole) != is {
					t.Errorf("that there is no role is %v of %v", !is, err)
				}
				return
			}
			check(t, err)
			if got.Proof = ""; got.Identity != c.want {
				t.Errorf("the token is %+v's, want %+v's", got.Identity, c.want)
			}
		})
	}
}

func TestInvalidTokensAreRefused(t *testing.T) {
	f := newFarm(t, often)
	now := time.Now()
	good := f.sign(nil, nil)
	part := strings.Split(good, ".")
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + part[1] + "."
	symmetric, err := accesstest.Key{Algorithm: jose.HS256}.Sign(nil, nil)
	if err == nil {
		t.Fatalf("a key without a secret signs %s", symmetric)
	}
	hs := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":"first"}`)) + "." + part[1] + "." + part[2]
	other := strings.Split(f.sign(map[string]any{"groups": []string{"farm-admins"}}, nil), ".")
	for name, c := range map[string]struct{ token, want string }{
		"nothing":                {"", "nor a JWT signed by"},
		"some text":              {"hello", "nor a JWT signed by"},
		"one of another farm":    {"tilth_aaaaaaaa_AAAAAAAAAAAAAAAAAAAAAAAAAA", "nor a JWT signed by"},
		"too long":               {good + strings.Repeat("A", access.MaxTokenBytes), "at most 8192"},
		"no signature":           {unsigned, "algorithm that is not taken"},
		"a shared secret":        {hs, "algorithm that is not taken"},
		"another's claims":       {part[0] + "." + other[1] + "." + part[2], "signature is wrong"},
		"another issuer":         {f.sign(map[string]any{"iss": f.URL() + "/"}, nil), "another issuer than " + f.URL()},
		"another audience":       {f.sign(map[string]any{"aud": []string{"x", "y"}}, nil), "another audience than tilth"},
		"no audience":            {f.sign(map[string]any{"aud": nil}, nil), "another audience than tilth"},
		"expired":                {f.sign(map[string]any{"exp": now.Add(-2 * time.Minute).Unix()}, nil), "has expired: get another from " + f.URL()},
		"without an end":         {f.sign(map[string]any{"exp": nil}, nil), "never expires"},
		"with a wrong end":       {f.sign(map[string]any{"exp": "soon"}, nil), "nor a JWT signed by"},
		"not yet valid":          {f.sign(map[string]any{"nbf": now.Add(time.Hour).Unix()}, nil), "not valid yet: check the clocks"},
		"of the future":          {f.sign(map[string]any{"iat": now.Add(time.Hour).Unix()}, nil), "not valid yet: check the clocks"},
		"one that ends sessions": {f.sign(nil, map[jose.HeaderKey]any{jose.HeaderType: "logout+jwt"}), "type that does not prove"},
		"one with its own rules": {f.sign(nil, map[jose.HeaderKey]any{"crit": []string{"x"}, "x": 1}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.Verify(t.Context(), c.token, now)
			wantError(t, err, c.token, c.want)
		})
	}
	if strings.Contains(f.log.String(), part[1][:32]) {
		t.Error("the log has a part of a token")
	}
}

// TestKeyWithinATokenCountsForNothing uses a token that contains its own key, which anyone can make.
func TestKeyWithinATokenCountsForNothing(t *testing.T) {
	f := newFarm(t, often)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	check(t, err)
	mine := accesstest.Key{ID: "first", Algorithm: jose.EdDSA, Private: private}
	token, err := mine.Sign([]byte("{}"), map[jose.HeaderKey]any{"jwk": jose.JSONWebKey{Key: public}})
	check(t, err)
	_, err = f.Verify(t.Context(), token, time.Now())
	wantError(t, err, token, "a key that "+f.URL()+" does not have")
}

func TestClocksMayDifferByAMinute(t *testing.T) {
	f := newFarm(t, often)
	now := time.Unix(time.Now().Unix(), 0)
	for at, want := range map[time.Duration]bool{
		-61 * time.Second: false, -time.Minute: true, 0: true, time.Hour + 59*time.Second: true, time.Hour + time.Minute: false,
	} {
		// Cached tokens are not checked for their start again.
		token := f.sign(map[string]any{"jti": at.String(), "nbf": now.Unix(), "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}, nil)
		if _, err := f.Verify(t.Context(), token, now.Add(at)); (err == nil) != want {
			t.Errorf("%v after the token begins: %v", at, err)
		}
	}
}

func TestGoodTokenEnds(t *testing.T) {
	f := newFarm(t, often)
	token := f.sign(nil, nil)
	got, err := f.Verify(t.Context(), token, time.Now())
	check(t, err)
	check(t, f.Valid(got, time.Now()))
	after := got.Expires
	wantError(t, f.Valid(got, after), token, "has expired")
	_, err = f.Verify(t.Context(), token, after)
	wantError(t, err, token, "has expired")
}

func TestEveryKindOfKeySigns(t *testing.T) {
	f := newFarm(t, often)
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	check(t, err)
	strong, err := rsa.GenerateKey(rand.Reader, 2048)
	check(t, err)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	check(t, err)
	for name, c := range map[string]struct {
		private crypto.Signer
		by      jose.SignatureAlgorithm
		is      bool
	}{
		"RSA": {strong, jose.RS256, true}, "RSA-PSS": {strong, jose.PS512, true}, "Ed25519": {edwards, jose.EdDSA, true},
		"short RSA": {weak, jose.RS256, false},
	} {
		t.Run(name, func(t *testing.T) {
			f.Add(accesstest.Key{ID: name, Algorithm: c.by, Private: c.private})
			_, err := f.Verify(t.Context(), f.sign(nil, nil), time.Now())
			if (err == nil) != c.is {
				t.Errorf("a token signed by %s: %v", name, err)
			}
		})
	}
}

// TestKeySignsByItsAlgorithmOnly checks that a key is only valid for its own algorithm.
func TestKeySignsByItsAlgorithmOnly(t *testing.T) {
	f := newFarm(t, often)
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	check(t, err)
	f.Add(accesstest.Key{ID: "rsa", Algorithm: jose.RS256, Private: private})
	_, err = f.Verify(t.Context(), f.sign(nil, nil), time.Now())
	check(t, err)
	token, err := accesstest.Key{ID: "rsa", Algorithm: jose.PS256, Private: private}.Sign([]byte("{}"), nil)
	check(t, err)
	_, err = f.Verify(t.Context(), token, time.Now())
	wantError(t, err, token, "does not have")
}

func TestTokenThatNamesNoKeyIsOfTheOnlyOne(t *testing.T) {
	f := newFarm(t, often)
	f.Drop("first")
	check(t, f.Rotate(""))
	_, err := f.Verify(t.Context(), f.sign(nil, nil), time.Now())
	check(t, err)
	check(t, f.Rotate(""))
	f.readAgain()
	token := f.sign(map[string]any{"sub": "bob"}, nil)
	_, err = f.Verify(t.Context(), token, time.Now())
	wantError(t, err, token, "does not say which of the issuer's keys")
}

// readAgain makes the verifier read the keys again by a token with an unknown key.
func (f *farm) readAgain() {
	f.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	check(f, err)
	token, err := accesstest.Key{ID: "nobody's", Algorithm: jose.EdDSA, Private: private}.Sign([]byte("{}"), nil)
	check(f, err)
	if _, err := f.Verify(f.Context(), token, time.Now()); err == nil {
		f.Fatal("a token that nobody knows is good")
	}
}

func TestKeysAreRotated(t *testing.T) {
	f := newFarm(t, often)
	old := f.sign(nil, nil)
	held, err := f.Verify(t.Context(), old, time.Now())
	check(t, err)
	check(t, f.Rotate("second"))
	_, err = f.Verify(t.Context(), f.sign(nil, nil), time.Now())
	check(t, err)
	check(t, f.Valid(held, time.Now()))

	f.Drop("first")
	check(t, f.Valid(held, time.Now())) // the keys were not fetched again yet
	f.readAgain()
	wantError(t, f.Valid(held, time.Now()), old, "has given up")
	_, err = f.Verify(t.Context(), old, time.Now())
	wantError(t, err, old, "has given up")
}

// TestKeyIsReplacedUnderItsName checks that another key may have the same name.
func TestKeyIsReplacedUnderItsName(t *testing.T) {
	f := newFarm(t, often)
	held, err := f.Verify(t.Context(), f.sign(nil, nil), time.Now())
	check(t, err)
	f.Drop("first")
	check(t, f.Rotate("first"))
	f.readAgain()
	if f.Valid(held, time.Now()) == nil {
		t.Error("a token of the key before is good")
	}
}

func TestKeysAreReadAgainNowAndThen(t *testing.T) {
	f := newFarm(t, Options{Refresh: time.Millisecond, Retry: time.Millisecond, Ask: time.Hour})
	held, err := f.Verify(t.Context(), f.sign(nil, nil), time.Now())
	check(t, err)
	check(t, f.Rotate("second"))
	f.Drop("first")
	deadline := time.After(10 * time.Minute) // generous for a busy machine
	for f.Valid(held, time.Now()) == nil {
		select {
		case <-deadline:
			t.Fatal("a key that was given up is still known")
		case <-time.After(time.Millisecond):
		}
	}
}

// TestTokensOfUnknownKeysAskTheIssuerSeldom checks the rate of requests, because anyone can make such tokens.
func TestTokensOfUnknownKeysAskTheIssuerSeldom(t *testing.T) {
	f := newFarm(t, Options{Ask: time.Hour})
	_, err := f.Verify(t.Context(), f.sign(nil, nil), time.Now())
	check(t, err)
	before := f.Requests()
	for range 100 {
		f.readAgain()
	}
	if asked := f.Requests() - before; asked != 0 {
		t.Errorf("the issuer was asked %d times", asked)
	}
}

// TestIssuerThatFailsBreaksNoKnownKeys covers faults of an issuer: known keys stay valid, and possibly valid tokens
// are not called invalid.
func TestIssuerThatFailsBreaksNoKnownKeys(t *testing.T) {
	at := func(path string, by http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == path {
				by(w, r)
				return
			}
			write(w, `{"issuer":"https://`+r.Host+`","jwks_uri":"https://`+r.Host+`/keys"}`)
		}
	}
	huge := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(bytes.Repeat([]byte(" "), 64<<10)); err != nil {
				return
			}
		}
	}
	says := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { write(w, text) }
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		log    string
	}{
		"an error":           {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusBadGateway) }, "the answer is 502 Bad Gateway"},
		"another place":      {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) }, "the answer is 302 Found"},
		"a huge document":    {huge, "more than 65536 bytes"},
		"a huge header":      {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 64<<10)) }, "header"},
		"no document":        {says("<html>"), "discovery document"},
		"another's document": {says(`{"issuer":"https://x.test"}`), "it is of issuer"},
		"keys in the clear": {func(w http.ResponseWriter, r *http.Request) {
			write(w, `{"issuer":"https://`+r.Host+`","jwks_uri":"http://x.test"}`)
		}, "jwks_uri"},
		"huge keys":           {at("/keys", huge), "more than 262144 bytes"},
		"no keys":             {at("/keys", says(`{"keys":[]}`)), "none of its 0 keys"},
		"keys of other kinds": {at("/keys", says(`{"keys":[{"kty":"oct","k":"AAAA","kid":"first"},{"kty":"x"},7]}`)), "none of its 3 keys"},
		"many keys":           {at("/keys", says(`{"keys":[`+strings.Repeat("{},", 64)+`{}]}`)), "has 65 keys"},
		"a closed connection": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFarm(t, often)
			known := f.sign(nil, nil)
			_, err := f.Verify(t.Context(), known, time.Now())
			check(t, err)
			check(t, f.Rotate("second"))
			f.SetHandler(c.answer)
			next := f.sign(nil, nil)
			_, err = f.Verify(t.Context(), next, time.Now())
			wantError(t, err, next, "try again later")
			if !errors.Is(err, ErrKeysUnavailable) {
				t.Errorf("the error %v does not say that the issuer is away", err)
			}
			if !strings.Contains(f.log.String(), c.log) {
				t.Errorf("the log says %s, want %q", f.log, c.log)
			}
			_, err = f.Verify(t.Context(), f.signedBefore(), time.Now())
			check(t, err)
			f.SetHandler(nil)
			_, err = f.Verify(t.Context(), next, time.Now())
			check(t, err)
		})
	}
}

// signedBefore returns an unused token signed with the issuer's first key.
func (f *farm) signedBefore() string {
	f.Helper()
	second := f.Issuer.Last()
	f.Drop(second.ID)
	defer f.Add(second)
	return f.sign(map[string]any{"sub": "bob"}, nil)
}

func write(w http.ResponseWriter, text string) { _, _ = w.Write([]byte(text)) }

// TestHangingIssuerDelaysCallsBriefly checks that an issuer that never answers delays calls only briefly, and does
// not delay the end of the verifier.
func TestHangingIssuerDelaysCallsBriefly(t *testing.T) {
	f := newFarm(t, often)
	_, err := f.Verify(t.Context(), f.sign(nil, nil), time.Now())
	check(t, err)
	f.SetHandler(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	check(t, f.Rotate("second"))
	token := f.sign(nil, nil)
	_, err = f.Verify(t.Context(), token, time.Now())
	wantError(t, err, token, "try again later")
	_, err = f.Verify(t.Context(), f.signedBefore(), time.Now())
	check(t, err)
}

// TestVerifiersStartWithoutTheirIssuer starts a verifier while its issuer is down.
func TestVerifiersStartWithoutTheirIssuer(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "issuer.crt")
	issuer, err := accesstest.NewIssuer(ca)
	check(t, err)
	defer issuer.Close()
	issuer.SetHandler(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusServiceUnavailable) })
	cfg, err := Parse(map[string]string{"issuer": issuer.URL(), "audience": accesstest.Audience, "ca": ca}, []string{"g=client"})
	check(t, err)
	v, err := Open(cfg, often)
	check(t, err)
	defer v.Close()
	token, err := issuer.Sign(issuer.Claims("alice", "g"), nil)
	check(t, err)
	if _, err = v.Verify(t.Context(), token, time.Now()); !errors.Is(err, ErrKeysUnavailable) || !v.KeysRead().IsZero() {
		t.Errorf("while the issuer is away: %v; keys were read at %v", err, v.KeysRead())
	}
	issuer.SetHandler(nil)
	if _, err = v.Verify(t.Context(), token, time.Now()); err != nil || v.KeysRead().IsZero() {
		t.Errorf("when the issuer is there: %v; keys were read at %v", err, v.KeysRead())
	}
}

// TestIssuerProvesItselfByItsCertificate checks that a server without a trusted certificate is refused.
func TestIssuerProvesItselfByItsCertificate(t *testing.T) {
	f := newFarm(t, often)
	cfg := f.cfg
	cfg.CA = ""
	v, err := Open(cfg, often)
	check(t, err)
	defer v.Close()
	if _, err := v.Verify(t.Context(), f.sign(nil, nil), time.Now()); !errors.Is(err, ErrKeysUnavailable) {
		t.Errorf("keys of a server that nobody vouches for: %v", err)
	}
}

func TestManyTokensAreRememberedWithinABound(t *testing.T) {
	f := newFarm(t, often)
	for i := range maxRemembered + 10 {
		f.remember([32]byte{byte(i), byte(i >> 8)}, &Token{})
		if n := len(f.remembered); n > maxRemembered {
			t.Fatalf("%d tokens are remembered", n)
		}
	}
}
