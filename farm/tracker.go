package farm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// TrackerConfig is what a tracker needs. Records, ArtifactsDir and Listen are required.
type TrackerConfig struct {
	// Records is the records file; ArtifactsDir the folder of the artifacts.
	Records, ArtifactsDir string
	// Listen is where gRPC is served: host:port or unix:PATH.
	Listen string
	// HTTP is where metrics, health and status are served; empty = nowhere.
	HTTP   string
	Logger *slog.Logger
	// Ready, when set, is called once with the addresses that are served, before the first call can come.
	Ready func(rpc, web net.Addr)
}

// RunTracker is the life of a tracker, until ctx ends or its disk fails.
func RunTracker(ctx context.Context, cfg TrackerConfig) error {
	db, err := records.Open(cfg.Records, records.Options{})
	if err != nil {
		return err
	}
	return errors.Join(serve(ctx, cfg, db), db.Close())
}

func serve(ctx context.Context, cfg TrackerConfig, db *records.DB) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	t, err := tracker.New(tracker.Config{
		Store: db, ArtifactsDir: cfg.ArtifactsDir, Logger: cfg.Logger, Registerer: registry,
	})
	if err != nil {
		return fmt.Errorf("tracker: %w", err)
	}
	rpc, err := tracker.Listen(cfg.Listen)
	if err != nil {
		return err
	}
	var web net.Listener
	var webAddr net.Addr
	if cfg.HTTP != "" {
		if web, err = tracker.Listen(cfg.HTTP); err != nil {
			return errors.Join(err, rpc.Close())
		}
		webAddr = web.Addr()
	}
	if cfg.Ready != nil {
		cfg.Ready(rpc.Addr(), webAddr)
	}
	return t.Serve(ctx, rpc, web)
}
