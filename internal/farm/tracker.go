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
	"github.com/tilth-dev/tilth/internal/artifact/s3"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// TrackerConfig configures a tracker. Records, ArtifactsDir and Listen are required.
type TrackerConfig struct {
	// Build is that of this program.
	Build Build
	// Store is the name of a store of StoreKinds, or its address; empty means the default.
	Store string
	// Shards is the number of shards of the store, each held by one tracker at a time; 0 means 1.
	Shards int
	// Records is the records file, if the store uses one. ArtifactsDir is the folder of artifacts.
	Records, ArtifactsDir string
	// ReleasesDir is the folder of a release offered to agents; empty means none.
	ReleasesDir string
	// ObjectStore is the address of an object store for artifacts (see s3.ParseAddress); empty means ArtifactsDir.
	ObjectStore string
	// Listen is the gRPC address, host:port or unix:PATH.
	Listen string
	// Advertise is the address at which trackers of other shards reach this one; empty means Listen, with the
	// host address used to reach the store if Listen names no host.
	Advertise string
	// HTTP is the address of metrics, health and status; empty means none.
	HTTP string
	// Security applies to both addresses.
	Security Security
	// Patience configures timeouts of agents and retries of work; zero fields mean the defaults.
	Patience Patience
	// Artifacts bounds the stored artifacts; zero fields mean the defaults.
	Artifacts artifact.Options
	// Backups configures backups of the records file; the zero value disables them.
	Backups tracker.Backups
	// Shares holds the weights and quotas of owners.
	Shares policy.Shares
	// Keep configures how long ended jobs are kept; zero fields mean the defaults.
	Keep   policy.Retention
	Logger *slog.Logger
	// Drift configures how calibrations are judged; zero fields mean the defaults.
	Drift policy.Drift
	// Opened, if set, is called with the store before the tracker uses it. It is for the single shard of a local farm.
	Opened func(records.Store)
	// Ready, if set, is called with the served addresses before the first call can arrive, and again whenever
	// a standby tracker starts serving.
	Ready func(rpc, web net.Addr)
	// Failing, if set, is called when the records cannot be written and RunTracker is about to return; nil
	// means that it is logged.
	Failing func(error)
	// Now is the wall clock, and Clock the clock of deadlines; nil means the machine's.
	Now, Clock func() time.Time
}

// Patience configures timeouts and retries; see tracker.Config.
type Patience struct {
	HeartbeatInterval, LeaseTimeout, Grace, OutageWait, SearchTurn time.Duration
	MaxAttempts                                                    uint32
	FirstRetry, MaxRetry, FirstCooldown, MaxCooldown               time.Duration
}

// RunTracker runs a tracker until ctx ends or its disk fails. It stands by while another tracker holds its
// database, also after another one has taken over.
func RunTracker(ctx context.Context, cfg TrackerConfig) error {
	kind, err := StoreKindOf(cfg.Store)
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

// openObjects opens an object store. It accepts one that works or is unreachable.
func openObjects(ctx context.Context, address string) (artifact.Blobs, error) {
	a, err := s3.ParseAddress(address)
	if err != nil {
		return nil, err
	}
	bucket, err := s3.Open(a)
	if err != nil {
		return nil, err
	}
	if err := bucket.Ready(ctx); err != nil && (!isUnreachable(err) || s3.IsAddressError(err)) {
		return nil, err
	}
	return bucket, nil
}

// tracker returns the configuration of the tracker, without its open resources.
func (cfg *TrackerConfig) tracker() tracker.Config {
	p := cfg.Patience
	return tracker.Config{
		ArtifactsDir: cfg.ArtifactsDir, ReleasesDir: cfg.ReleasesDir, Logger: cfg.Logger, Now: cfg.Now, Clock: cfg.Clock,
		Shares: cfg.Shares, Keep: cfg.Keep, HeartbeatInterval: p.HeartbeatInterval, LeaseTimeout: p.LeaseTimeout, Grace: p.Grace,
		OutageWait: p.OutageWait, MaxAttempts: p.MaxAttempts, SearchTurn: p.SearchTurn,
		FirstRetry: p.FirstRetry, MaxRetry: p.MaxRetry, FirstCooldown: p.FirstCooldown, MaxCooldown: p.MaxCooldown,
		Drift: cfg.Drift, Artifacts: cfg.Artifacts, Backups: cfg.Backups, Failing: cfg.Failing,
	}
}

// addrOf returns the address of a listener, or nil.
func addrOf(lis net.Listener) net.Addr {
	if lis == nil {
		return nil
	}
	return lis.Addr()
}

// listen opens the listeners of calls and of web pages (nil if disabled).
func listen(cfg TrackerConfig) (rpc, web net.Listener, err error) {
	if rpc, err = tracker.Listen(cfg.Listen); err != nil || cfg.HTTP == "" {
		return rpc, nil, err
	}
	if web, err = tracker.Listen(cfg.HTTP); err != nil {
		return nil, nil, errors.Join(err, rpc.Close())
	}
	return rpc, web, nil
}

// versions warns once about a store of a later version, which this program can use.
type versions struct{ said sync.Once }

func (v *versions) tell(log *slog.Logger, store records.Store) {
	of, is := store.(records.Versioned)
	if !is {
		return
	}
	if schema, own := of.Schema(); schema > own {
		v.said.Do(func() {
			log.Info("database schema is newer; upgrade this tracker", "schema", schema, "own", own)
		})
	}
}
