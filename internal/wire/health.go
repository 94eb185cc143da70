package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Paths of the pages that show the liveness and readiness of a process. They are public, so their texts must not name
// files or users.
const (
	LivePath  = "/healthz"
	ReadyPath = "/readyz"
)

// readyLimit bounds a readiness check.
const readyLimit = 2 * time.Second

// HealthChecks return why a process is unhealthy, or nil.
type HealthChecks struct {
	// Live fails if only a restart helps.
	Live func() error
	// Ready fails while the process cannot do its work.
	Ready func(ctx context.Context) error
}

// Register serves both pages: 200 and "ok", or 503 and the reason.
func (c HealthChecks) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET "+LivePath, func(w http.ResponseWriter, _ *http.Request) { answer(w, c.Live()) })
	mux.HandleFunc("GET "+ReadyPath, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyLimit)
		defer cancel()
		answer(w, c.Ready(ctx))
	})
}

func answer(w http.ResponseWriter, err error) {
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		http.Error(w, strings.Join(strings.Fields(err.Error()), " "), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// maxAnswerBytes bounds the response.
const maxAnswerBytes = 4096

// AskHealth requests one of the health pages from addr, host:port or unix:PATH, and returns why the process is
// unhealthy, or nil. A non-nil side enables TLS.
func AskHealth(ctx context.Context, addr, path string, side *tls.Config) error {
	if err := CheckAddress(addr); err != nil {
		return fmt.Errorf("health: %w", err)
	}
	transport := &http.Transport{TLSClientConfig: side, DisableKeepAlives: true}
	host := addr
	if socket, is := strings.CutPrefix(addr, "unix:"); is {
		host = "localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
	}
	scheme := "http"
	if side != nil {
		scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+host+path, nil)
	if err != nil {
		return fmt.Errorf("health of %s: %w: want host:port or unix:PATH", addr, err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if unknown, is := errors.AsType[*net.DNSError](err); is {
		return fmt.Errorf("health of %s: %w: check the spelling of the host name, and DNS", addr, unknown)
	}
	if err != nil {
		return fmt.Errorf("health of %s: %w: check that it was started with --http, and check --tls-ca", addr, err)
	}
	defer response.Body.Close()
	said, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return fmt.Errorf("health of %s: %w", addr, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is not healthy: %s", addr, strings.TrimSpace(string(said)))
	}
	return nil
}
