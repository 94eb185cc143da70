package wire

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// serve serves checks on a unix socket and a TCP port.
func serve(t *testing.T, c HealthChecks) (addrs []string) {
	t.Helper()
	mux := http.NewServeMux()
	c.Register(mux)
	port := httptest.NewServer(mux)
	t.Cleanup(port.Close)
	path := filepath.Join(t.TempDir(), "s")
	lis, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	socket := httptest.NewUnstartedServer(mux)
	socket.Listener.Close()
	socket.Listener = lis
	socket.Start()
	t.Cleanup(socket.Close)
	return []string{port.Listener.Addr().String(), "unix:" + path}
}

func TestProcessThatIsWellSaysSo(t *testing.T) {
	for _, addr := range serve(t, HealthChecks{Live: func() error { return nil }, Ready: func(context.Context) error { return nil }}) {
		for _, path := range []string{LivePath, ReadyPath} {
			if err := AskHealth(t.Context(), addr, path, nil); err != nil {
				t.Errorf("%s%s: %v", addr, path, err)
			}
		}
	}
}

func TestProcessSaysWhyItIsNotReady(t *testing.T) {
	checks := HealthChecks{
		Live:  func() error { return nil },
		Ready: func(context.Context) error { return errors.New("no tracker\nanswers") },
	}
	for _, addr := range serve(t, checks) {
		if err := AskHealth(t.Context(), addr, LivePath, nil); err != nil {
			t.Error(err)
		}
		if err := AskHealth(t.Context(), addr, ReadyPath, nil); err == nil || err.Error() != addr+" is not healthy: no tracker answers" {
			t.Errorf("ready: %v", err)
		}
	}
}

func TestHealthOfNoProcessNamesTheRemedy(t *testing.T) {
	err := AskHealth(t.Context(), "unix:"+filepath.Join(t.TempDir(), "none"), LivePath, nil)
	if err == nil || !strings.Contains(err.Error(), "check that it was started with --http") {
		t.Error(err)
	}
}
