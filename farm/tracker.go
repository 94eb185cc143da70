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
	"github.com/tilth-dev/tilth/artifact/objects"
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
	// Shards is how many shards the store has, each of which a tracker has at a time; 0 = 1.
	Shards int
	// Records is the records file, where the store keeps one; ArtifactsDir the folder of the artifacts.
	Records, ArtifactsDir string
	// ObjectStore is the address of one for the artifacts; see objects.ParseAddress. Empty = they are in ArtifactsDir.
	ObjectStore string
	// Listen is where gRPC is served: host:port or unix:PATH.
	Listen string
	// Advertise is where other trackers of the store's shards reach this one; empty = at Listen, and if that names no
	// host, at the one from which the store is reached.
	Advertise string
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
	// Ready, when set, is called with the addresses that are served, before the first call can come: once, and again
	// whenever a tracker serves that stood by meanwhile.
	Ready func(rpc, web net.Addr)
	// Failing hears that the records cannot be written, with which RunTracker ends; nil = it is logged.
	Failing func(error)
}

// Patience is how long a tracker waits, and how often it tries; see tracker.Config.
type Patience struct {
	LeaseTimeout, Grace, OutageWait, SearchTurn time.Duration
	MaxAttempts                                 uint32
}

// RunTracker is the life of a tracker, until ctx ends or its disk fails. While another one has its database it stands
// by, and again when another one has taken that over.
func RunTracker(ctx context.Context, cfg TrackerConfig) error {
	kind, err := registry.Of(cfg.Store)
	if err != nil {
		return fmt.Errorf("tracker: %w", err)
	}
	if cfg.ObjectStore != "" {
		if cfg.Artifacts.Blobs, err = openObjects(ctx, cfg.ObjectStore); err != nil {
			return fmt.Errorf("tracker: %w", err)
		}
	}
	life, end := context.WithCancel(ctx)
	var memory sync.WaitGroup
	memory.Go(func() { limitMemory(life) })
	for cfg.Shards <= 1 {
		err = serveOnce(ctx, cfg, kind)
		if !errors.Is(err, records.ErrTakenOver) || ctx.Err() != nil {
			break
		}
		cfg.Logger.Warn("another tracker has the database now", "error", err)
	}
	if cfg.Shards > 1 {
		err = serveShards(ctx, cfg, kind)
	}
	end()
	memory.Wait()
	return err
}

// openObjects returns an object store that does what it is asked.
func openObjects(ctx context.Context, address string) (artifact.Blobs, error) {
	a, err := objects.ParseAddress(address)
	if err != nil {
		return nil, err
	}
	bucket, err := objects.Open(a)
	if err != nil {
		return nil, err
	}
	return bucket, bucket.Ready(ctx)
}

// serveOnce opens the store and serves, until ctx ends, the disk fails, or another tracker takes the store over.
func serveOnce(ctx context.Context, cfg TrackerConfig, kind registry.Kind) error {
	var by closers // empty = it does not stand by
	store, err := openStore(ctx, cfg, kind, func() (err error) {
		cfg.Logger.Info("another tracker has the database, standing by", "grpc", cfg.Listen, "http", cfg.HTTP)
		by, err = standBy(cfg)
		return err
	})
	end := func() error { return by.Close() }
	switch {
	case err != nil && ctx.Err() != nil:
		return end()
	case err != nil:
		return errors.Join(err, end())
	}
	security, closer, err := cfg.Security.open(cfg.Logger)
	if err != nil {
		return errors.Join(fmt.Errorf("tracker: %w", err), store.Close(), end())
	}
	return errors.Join(serve(ctx, cfg, store, security, end), store.Close(), closer.Close())
}

func openStore(ctx context.Context, cfg TrackerConfig, kind registry.Kind, standsBy func() error) (records.Store, error) {
	if kind.StandBy == nil {
		return kind.Open(cfg.Store, cfg.Records)
	}
	return kind.StandBy(ctx, cfg.Store, standsBy)
}

// standBy answers at the tracker's addresses, until what it returns is closed. The audit log belongs to the one that
// serves.
func standBy(cfg TrackerConfig) (closers, error) {
	cfg.Security.AuditFile, cfg.Security.AuditTo = "", nil
	security, closer, err := cfg.Security.open(cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("tracker: %w", err)
	}
	rpc, web, err := listen(cfg)
	if err != nil {
		return nil, errors.Join(err, closer.Close())
	}
	by, err := tracker.StandBy(security, cfg.Logger, newRegistry(), rpc, web)
	if err != nil {
		return nil, errors.Join(err, rpc.Close(), closeListener(web), closer.Close())
	}
	return closers{by, closer}, nil
}

func closeListener(lis net.Listener) error {
	if lis == nil {
		return nil
	}
	return lis.Close()
}

// serve serves with a store that is open. ended ends what answers at the tracker's addresses while it stands by: not
// before all is ready to go on.
func serve(ctx context.Context, cfg TrackerConfig, store records.Store, security tracker.Security, ended func() error) error {
	registry := newRegistry()
	c := cfg.tracker()
	c.Store, c.Registerer, c.Security = store, registry, security
	c.Artifacts.Opening = ctx
	t, err := tracker.New(c)
	if err != nil && ctx.Err() != nil {
		return ended()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("tracker: %w", err), ended())
	}
	if err := ended(); err != nil {
		return err
	}
	rpc, web, err := listen(cfg)
	if err != nil {
		return err
	}
	if cfg.Ready != nil {
		cfg.Ready(rpc.Addr(), addrOf(web))
	}
	return t.Serve(ctx, rpc, web)
}

// tracker is what a tracker is to go by, but for what it is opened with.
func (cfg *TrackerConfig) tracker() tracker.Config {
	return tracker.Config{
		ArtifactsDir: cfg.ArtifactsDir, Logger: cfg.Logger,
		Shares: cfg.Shares, Keep: cfg.Keep, LeaseTimeout: cfg.Patience.LeaseTimeout, Grace: cfg.Patience.Grace,
		OutageWait: cfg.Patience.OutageWait, MaxAttempts: cfg.Patience.MaxAttempts, SearchTurn: cfg.Patience.SearchTurn,
		Drift: cfg.Drift, Artifacts: cfg.Artifacts, Backups: cfg.Backups, Failing: cfg.Failing,
	}
}

// addrOf is the address of a listener; nil when there is none.
func addrOf(lis net.Listener) net.Addr {
	if lis == nil {
		return nil
	}
	return lis.Addr()
}

// listen listens where calls are served, and where pages are (nil = nowhere).
func listen(cfg TrackerConfig) (rpc, web net.Listener, err error) {
	if rpc, err = tracker.Listen(cfg.Listen); err != nil || cfg.HTTP == "" {
		return rpc, nil, err
	}
	if web, err = tracker.Listen(cfg.HTTP); err != nil {
		return nil, nil, errors.Join(err, rpc.Close())
	}
	return rpc, web, nil
}
