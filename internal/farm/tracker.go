package farm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/artifact/objects"
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
	// ReleasesDir has a release that is offered to agents; empty = none.
	ReleasesDir string
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
	// Now is the wall's clock, and Clock what deadlines are judged by; nil = the machine's.
	Now, Clock func() time.Time
}

// Patience is how long a tracker waits, and how often it tries; see tracker.Config.
type Patience struct {
	HeartbeatInterval, LeaseTimeout, Grace, OutageWait, SearchTurn time.Duration
	MaxAttempts                                                    uint32
	FirstRetry, MaxRetry, FirstRest, MaxRest                       time.Duration
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
	if cfg.Shards > 1 {
		err = serveShards(ctx, cfg, kind)
	} else {
		err = (&single{cfg: cfg, kind: kind}).run(ctx)
	}
	end()
	memory.Wait()
	return err
}

// openObjects returns an object store that does what it is asked, or is away.
func openObjects(ctx context.Context, address string) (artifact.Blobs, error) {
	a, err := objects.ParseAddress(address)
	if err != nil {
		return nil, err
	}
	bucket, err := objects.Open(a)
	if err != nil {
		return nil, err
	}
	if err := bucket.Ready(ctx); err != nil && (!isAway(err) || objects.WrongAddress(err)) {
		return nil, err
	}
	return bucket, nil
}

// tracker is what a tracker is to go by, but for what it is opened with.
func (cfg *TrackerConfig) tracker() tracker.Config {
	p := cfg.Patience
	return tracker.Config{
		ArtifactsDir: cfg.ArtifactsDir, ReleasesDir: cfg.ReleasesDir, Logger: cfg.Logger, Now: cfg.Now, Clock: cfg.Clock,
		Shares: cfg.Shares, Keep: cfg.Keep, HeartbeatInterval: p.HeartbeatInterval, LeaseTimeout: p.LeaseTimeout, Grace: p.Grace,
		OutageWait: p.OutageWait, MaxAttempts: p.MaxAttempts, SearchTurn: p.SearchTurn,
		FirstRetry: p.FirstRetry, MaxRetry: p.MaxRetry, FirstRest: p.FirstRest, MaxRest: p.MaxRest,
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
