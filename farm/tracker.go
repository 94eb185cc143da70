package farm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/artifact"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/registry"
	"github.com/tilth-dev/tilth/tracker"
	"github.com/tilth-dev/tilth/tracker/policy/drift"
	"github.com/tilth-dev/tilth/tracker/policy/quota"
	"github.com/tilth-dev/tilth/tracker/policy/retention"
	"github.com/tilth-dev/tilth/tracker/upkeep"
)

// KeepAll keeps every job that has ended, as far as there is room for all owners.
func KeepAll() retention.Keep { return retention.Keep{Jobs: -1, Age: -1} }

// TrackerConfig is what a tracker needs. Records, ArtifactsDir and Listen are required.
type TrackerConfig struct {
	// Store is the kind of store, by its name in records/registry, or its address; empty = the usual one.
	Store string
	// Records is the records file, where the store keeps one; ArtifactsDir the folder of the artifacts.
	Records, ArtifactsDir string
	// Listen is where gRPC is served: host:port or unix:PATH.
	Listen string
	// HTTP is where metrics, health and status are served; empty = nowhere.
	HTTP string
	// Security closes both.
	Security Security
	// Patience is for agents that are silent and work that fails; zero fields are the tracker's own.
	Patience Patience
	// Artifacts bound what is stored of them; zero fields are the store's own.
	Artifacts artifact.Options
	// Backups says when the records file is backed up, and where; the zero value is never.
	Backups upkeep.Backups
	// Shares are the owners' weights and quotas.
	Shares quota.Shares
	// Keep says how long jobs are kept that have ended; zero fields are the tracker's own.
	Keep   retention.Keep
	Logger *slog.Logger
	// Drift says how devices are judged by their calibrations; zero values mean the defaults.
	Drift drift.Policy
	// Ready, when set, is called once with the addresses that are served, before the first call can come.
	Ready func(rpc, web net.Addr)
	// Failing hears once that the records cannot be written, with which RunTracker ends; nil = it is logged.
	Failing func(error)
}

// Patience is how long a tracker waits, and how often it tries; see tracker.Config.
type Patience struct {
	LeaseTimeout, Grace, OutageWait, SearchTurn time.Duration
	MaxAttempts                                 uint32
}

// RunTracker is the life of a tracker, until ctx ends or its disk fails.
func RunTracker(ctx context.Context, cfg TrackerConfig) error {
	kind, err := registry.Of(cfg.Store)
	if err != nil {
		return fmt.Errorf("tracker: %w", err)
	}
	store, err := kind.Open(cfg.Store, cfg.Records)
	if err != nil {
		return err
	}
	security, closer, err := cfg.Security.open(cfg.Logger)
	if err != nil {
		return errors.Join(fmt.Errorf("tracker: %w", err), store.Close())
	}
	life, end := context.WithCancel(ctx)
	var memory sync.WaitGroup
	memory.Go(func() { limitMemory(life) })
	err = serve(ctx, cfg, store, security)
	end()
	memory.Wait()
	return errors.Join(err, store.Close(), closer.Close())
}

func serve(ctx context.Context, cfg TrackerConfig, store records.Store, security tracker.Security) error {
	registry := newRegistry()
	t, err := tracker.New(tracker.Config{
		Store: store, ArtifactsDir: cfg.ArtifactsDir, Logger: cfg.Logger, Registerer: registry,
		Security: security, Shares: cfg.Shares, Keep: cfg.Keep, LeaseTimeout: cfg.Patience.LeaseTimeout, Grace: cfg.Patience.Grace,
		OutageWait: cfg.Patience.OutageWait, MaxAttempts: cfg.Patience.MaxAttempts, SearchTurn: cfg.Patience.SearchTurn,
		Drift: cfg.Drift, Artifacts: cfg.Artifacts, Backups: cfg.Backups, Failing: cfg.Failing,
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
