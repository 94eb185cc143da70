package authz

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/wire"
)

// closedGate returns a gate with a single token of an admin.
func closedGate(t testing.TB) (g *Gate, token string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.json")
	token, _, err := access.CreateToken(path, access.TokenRequest{Name: "root", Role: access.Admin}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	file, err := access.OpenTokens(path, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Tokens: file}), token
}

// FuzzAdmit checks that only a valid token admits a call, and only to methods with a rule.
func FuzzAdmit(f *testing.F) {
	g, token := closedGate(f)
	for _, method := range append(wire.Methods(), "", "/", "//", "x", "/a.b/c/d") {
		f.Add(method, "Bearer "+token)
		f.Add(method, "bearer")
		f.Add(method, "")
	}
	f.Fuzz(func(t *testing.T, method, authorization string) {
		_, err := g.Admit(context.Background(), method, metadata.Pairs("authorization", authorization))
		rule := wire.Call(method)
		if err != nil || rule.GetPublic() {
			return
		}
		if rule == nil {
			t.Errorf("method %q got through", method)
		}
		if len(authorization) != len("Bearer ")+len(token) || authorization[len("Bearer "):] != token {
			t.Errorf("authorization %q got through", authorization)
		}
	})
}

func FuzzPages(f *testing.F) {
	g, token := closedGate(f)
	handler := g.HTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) }), "/healthz")
	f.Add("/metrics", "Bearer "+token)
	f.Add("/healthz", "")
	f.Add("/healthz/../metrics", "")
	f.Add("/HEALTHZ", "Basic eDp5")
	f.Fuzz(func(t *testing.T, path, authorization string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path = path
		r.Header.Set("Authorization", authorization)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		through := w.Code == http.StatusTeapot
		if proved := len(authorization) > len(token) && authorization[len(authorization)-len(token):] == token; through && path != "/healthz" && !proved {
			t.Errorf("path %q, authorization %q got through", path, authorization)
		}
	})
}
