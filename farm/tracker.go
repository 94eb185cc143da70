package farm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

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
	rpc, err := Listen(cfg.Listen)
	if err != nil {
		return err
	}
	var web net.Listener
	var webAddr net.Addr
	if cfg.HTTP != "" {
		if web, err = Listen(cfg.HTTP); err != nil {
			return errors.Join(err, rpc.Close())
		}
		webAddr = web.Addr()
	}
	if cfg.Ready != nil {
		cfg.Ready(rpc.Addr(), webAddr)
	}
	return t.Serve(ctx, rpc, web)
}

// Listen opens host:port or unix:PATH. The socket of a process that was killed is taken over.
func Listen(addr string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(addr, "unix:")
	network := "tcp"
	if isUnix {
		network, addr = "unix", path
		if err := removeDeadSocket(path); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		return nil, fmt.Errorf("%w: choose another address, or stop what uses this one", err)
	}
	return l, nil
}

// removeDeadSocket removes a socket that nobody answers on.
func removeDeadSocket(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("listen on %s: there is a file that is no socket: choose another path", path)
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
		return fmt.Errorf("listen on %s: another process serves it: stop it, or choose another path", path)
	}
	return os.Remove(path)
}
