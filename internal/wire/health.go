package wire

import (
	"context"
	"fmt"
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
