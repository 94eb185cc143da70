package farm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tilth-dev/tilth/internal/access/connlimit"
	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/artifact/s3"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// Build identifies a build of the program in metrics.
type Build struct{ Version, Commit string }

// newRegistry returns a registry with the metrics of the process.
func newRegistry(b Build) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tilth_build_info", Help: "Always 1: the version and commit of the program, and that of Go which compiled it.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "go_version": runtime.Version()},
	})
	info.Set(1)
	registry.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// site serves the web pages of an agent. Methods of a nil site do nothing.
type site struct {
	server *http.Server
	served chan error
}

// siteTimeout bounds reading a request and writing its response.
const siteTimeout = 30 * time.Second

// openSite serves the agent's metrics and health. It returns nil if HTTP is empty.
func (b *base) openSite() (*site, error) {
	if b.cfg.HTTP == "" {
		return nil, nil
	}
	lis, err := tracker.Listen(b.cfg.HTTP)
	if err != nil {
		return nil, err
	}
	lis = connlimit.Limits{}.Listen(lis, false, func(net.Addr, error) {})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(b.registry, promhttp.HandlerOpts{}))
	wire.HealthChecks{Live: func() error { return nil }, Ready: b.meter.Ready}.Register(mux)
	s := &site{
		server: &http.Server{Handler: mux, ReadTimeout: siteTimeout, WriteTimeout: siteTimeout, IdleTimeout: siteTimeout, MaxHeaderBytes: 16 << 10},
		served: make(chan error, 1),
	}
	go func() { s.served <- s.server.Serve(lis) }()
	b.cfg.Logger.Info("agent serves", "agent", b.cfg.Name, "http", lis.Addr())
	return s, nil
}

// close stops serving and returns an earlier failure.
func (s *site) close() error {
	if s == nil {
		return nil
	}
	err := s.server.Close()
	if failed := <-s.served; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(fmt.Errorf("serve HTTP: %w", failed), err)
	}
	return err
}

// unreachableService returns the unreachable service that caused an error, in words that do not reveal its location,
// or nil.
func unreachableService(err error) error {
	for _, of := range []error{records.ErrAway, artifact.ErrAway} {
		if errors.Is(err, of) {
			return of
		}
	}
	return nil
}

// isUnreachable reports whether an error means that a server is unreachable.
func isUnreachable(err error) bool { return unreachableService(err) != nil }

// isTransient reports whether an error of a store is transient. Until the process has served or stood by, its address
// may be wrong. Later, all errors of opening are transient, except those caused by changes to the database.
func isTransient(err error, began, opening bool) bool {
	if !began {
		return isUnreachable(err) && !s3.IsAddressError(err) || errors.Is(err, records.ErrInUse)
	}
	changed := errors.Is(err, records.ErrShards) || errors.Is(err, records.ErrVersion) || errors.Is(err, records.ErrUnfinished)
	return opening && !changed || isUnreachable(err)
}

// untilFailure is the log handler of a single-process farm. It is silent after a service failed: the failure
// is returned as an error, and the messages of the other services while they stop are consequences of it.
type untilFailure struct {
	slog.Handler
	life context.Context
}

// Enabled implements slog.Handler.
func (h untilFailure) Enabled(ctx context.Context, level slog.Level) bool {
	cause := context.Cause(h.life)
	return (cause == nil || errors.Is(cause, errStopped)) && h.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h untilFailure) WithAttrs(attrs []slog.Attr) slog.Handler {
	return untilFailure{h.Handler.WithAttrs(attrs), h.life}
}

// WithGroup implements slog.Handler.
func (h untilFailure) WithGroup(name string) slog.Handler {
	return untilFailure{h.Handler.WithGroup(name), h.life}
}
