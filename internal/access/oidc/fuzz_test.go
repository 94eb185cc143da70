package oidc

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/lab/testkit/accesstest"
)

// FuzzVerify checks that a token without the issuer's signature never identifies anyone.
func FuzzVerify(f *testing.F) {
	farm := newFarm(f, Options{Ask: time.Hour})
	good := farm.sign(nil, nil)
	f.Add(good)
	f.Add(strings.ToUpper(good))
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Add("..")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := farm.Verify(t.Context(), text, time.Now()); err == nil && said(t, text) != said(t, good) {
			t.Errorf("token %q is good", text)
		}
	})
}

// said returns a token's decoded content. Several encodings are equal, because the last character of each part has
// unused bits.
func said(t *testing.T, token string) string {
	t.Helper()
	parts := strings.Split(token, ".")
	var said []string
	for _, part := range parts[:2] {
		text, err := base64.RawURLEncoding.DecodeString(part)
		check(t, err)
		said = append(said, string(text))
	}
	return strings.Join(said, ".")
}

// FuzzClaims checks that an accepted token is valid now, is for this audience, and has a named owner and a granted
// role, whatever the issuer signs.
func FuzzClaims(f *testing.F) {
	farm := newFarm(f, Options{Ask: time.Hour})
	for _, groups := range [][]string{{"boards"}, {"x", "farm-admins"}, nil} {
		text, err := json.Marshal(farm.Claims("alice", groups...))
		check(f, err)
		f.Add(text)
	}
	f.Add([]byte(`{"iss":[],"aud":{},"exp":1e400,"sub":7,"groups":{"a":1}}`))
	f.Add([]byte("null"))
	signs := farm.Last()
	f.Fuzz(func(t *testing.T, payload []byte) {
		text, err := signs.Sign(payload, nil)
		check(t, err)
		now := time.Now()
		got, err := farm.Verify(t.Context(), text, now)
		if err != nil {
			return
		}
		if err := access.CheckName(got.Name); err != nil {
			t.Error(err)
		}
		if got.Role != access.Admin && got.Role != access.Client && got.Role != access.Agent || !got.Expires.After(now) {
			t.Errorf("%s makes %+v", payload, got)
		}
		if !strings.Contains(string(payload), accesstest.Audience) && !strings.Contains(string(payload), `\u`) {
			t.Errorf("%s is for %s", payload, accesstest.Audience)
		}
	})
}

// FuzzKeys checks that accepted keys can be used and compared, whatever their source.
func FuzzKeys(f *testing.F) {
	farm := newFarm(f, Options{Ask: time.Hour})
	text, err := json.Marshal(farm.Keys())
	check(f, err)
	f.Add(text)
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"},{"kty":"oct","k":"AAAA"},{"kty":"EC","crv":"P-256","x":"","y":""}]}`))
	f.Add([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"a","use":"sig"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parseKeys(text)
		if (err == nil) != (len(keys) > 0) || len(keys) > maxKeys {
			t.Errorf("%d keys, and %v", len(keys), err)
		}
		for _, k := range keys {
			if !slices.ContainsFunc(algorithms, k.signs) || len(k.id) > maxKeyIDBytes || k.thumbprint == "" {
				t.Errorf("key %+v", k)
			}
		}
	})
}

func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"issuer":"https://x.test","jwks_uri":"https://x.test/keys"}`))
	f.Add([]byte(`{"issuer":"https://x.test","jwks_uri":"https://x.test/keys?policy=a"}`))
	f.Add([]byte(`{"issuer":"https://x.test","jwks_uri":"file:///etc/passwd"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if at, err := parseDocument(text, "https://x.test"); err == nil && !strings.HasPrefix(strings.ToLower(at), "https://") {
			t.Errorf("keys are read from %q", at)
		}
	})
}
