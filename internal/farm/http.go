package farm

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tilth-dev/tilth/internal/access/connlimit"
	"github.com/tilth-dev/tilth/internal/wire"
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
	lis = connlimit.Limits{}.Listen(lis, func(net.Addr) {})
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
