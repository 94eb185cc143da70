package tracker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/internal/access/connlimit"
	"github.com/tilth-dev/tilth/internal/artifact"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/coordinator"
	"github.com/tilth-dev/tilth/tracker/policy"
	"github.com/tilth-dev/tilth/tracker/rpc"
	"github.com/tilth-dev/tilth/tracker/state"
	"github.com/tilth-dev/tilth/tracker/telemetry"
)

// Config configures a tracker. Store and ArtifactsDir are required; all other fields have defaults.
type Config struct {
	// Store must be open. The caller closes it after the tracker's servers have stopped. Operations that need a file,
	// such as backups, require a records.File.
	Store records.Store
	// ArtifactsDir is the folder of the artifact store.
	ArtifactsDir string
	// ReleasesDir is the folder of a release for agents to install; empty for none.
	ReleasesDir string
	// Artifacts configures the artifact store. New sets Dir, Damaged, Logger and Now.
	Artifacts artifact.Options
	// Logger receives events of jobs, agents and leases; nil discards them.
	Logger *slog.Logger
	// Failing is called once when the store cannot be written; Serve returns then. If nil, the error is logged.
	Failing func(error)
	// Registerer takes the metrics; nil discards them.
	Registerer prometheus.Registerer
	// Now is the wall clock, for timestamps; nil means time.Now.
	Now func() time.Time
	// Clock is monotonic, for deadlines; nil means time.Now, whose monotonic reading ignores changes of the wall
	// clock. Only differences of its values matter.
	Clock func() time.Time
	// HeartbeatInterval is how often agents report while they are few; 0 means 5 s. Beyond a thousand heartbeats per
	// second it is stretched, down to three per LeaseTimeout.
	HeartbeatInterval time.Duration
	// LeaseTimeout is the lifetime of a lease or session without a heartbeat; 0 means 30 s.
	LeaseTimeout time.Duration
	// Grace is the lifetime of leases and sessions from before a restart without a heartbeat; 0 means 2 min.
	Grace time.Duration
	// Security decides who may call and limits peers; the zero value admits everyone.
	Security Security
	// OutageWait is how long leases and sessions survive when most agents fall silent at once; 0 means 2 min.
	OutageWait time.Duration
	// MaxAttempts bounds the attempts at a batch, or at a job without progress; 0 means 4. Attempts blamed on the
	// agent do not count, up to four times as many in all.
	MaxAttempts uint32
	// FirstRetry and MaxRetry bound the delay before failed work is retried, which doubles with each failure; 0 means
	// 1 s and 1 min. A negative FirstRetry means no delay.
	FirstRetry, MaxRetry time.Duration
	// FirstCooldown and MaxCooldown bound the cooldown of an agent whose leases all fail; 0 means 10 s and 5 min.
	FirstCooldown, MaxCooldown time.Duration
	// SearchTurn is how long a tuner may hold a job while others wait; 0 means 2 min.
	SearchTurn time.Duration
	// Shares are the owners' weights and quotas; the zero value means equal and unlimited.
	Shares policy.Shares
	// Keep bounds the retention of ended jobs.
	Keep policy.Retention
	// Limits bound the tracker's memory and the stored size of all ended jobs.
	Limits state.Limits
	// Backups schedules backups of the records file; the zero value makes none.
	Backups Backups
	// Drift configures how calibrations are judged.
	Drift policy.Drift
	// Shard identifies the shard of the database that Store holds; the zero value is the only shard.
	Shard Shard
}

// Shard identifies one of several shards of a database. The zero value is the only shard.
type Shard = rpc.Shard

func (c *Config) setDefaults() {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Registerer = cmp.Or[prometheus.Registerer](c.Registerer, prometheus.NewRegistry())
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Drift = c.Drift.WithDefaults()
	if c.Clock == nil {
		c.Clock = time.Now
	}
	c.HeartbeatInterval = cmp.Or(c.HeartbeatInterval, DefaultHeartbeat)
	c.LeaseTimeout = cmp.Or(c.LeaseTimeout, DefaultLeaseTimeout)
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	c.OutageWait = cmp.Or(c.OutageWait, DefaultOutageWait)
	c.SearchTurn = cmp.Or(c.SearchTurn, DefaultSearchTurn)
	c.Limits = c.Limits.WithDefaults()
	c.Keep = c.Keep.WithDefaults()
	c.MaxAttempts = cmp.Or(c.MaxAttempts, DefaultMaxAttempts)
	c.FirstRetry, c.MaxRetry = cmp.Or(c.FirstRetry, time.Second), cmp.Or(c.MaxRetry, time.Minute)
	c.FirstCooldown, c.MaxCooldown = cmp.Or(c.FirstCooldown, 10*time.Second), cmp.Or(c.MaxCooldown, 5*time.Minute)
}

// state returns the configuration of the state machine.
func (c *Config) state() state.Config {
	return state.Config{
		Logger: c.Logger, Now: c.Now, Clock: c.Clock,
		HeartbeatInterval: c.HeartbeatInterval, LeaseTimeout: c.LeaseTimeout, Grace: c.Grace, OutageWait: c.OutageWait,
		MaxAttempts: c.MaxAttempts, FirstRetry: c.FirstRetry, MaxRetry: c.MaxRetry,
		Cooldown: policy.Cooldown{First: c.FirstCooldown, Max: c.MaxCooldown}, SearchTurn: c.SearchTurn,
		Shares: c.Shares, Keep: c.Keep, Limits: c.Limits, Drift: c.Drift, Shards: c.Shard.Count,
	}
}

// Tracker is an assembled tracker. Its methods, the tilth.v1 services and a few to run it, are safe for concurrent
// use.
type Tracker struct {
	*rpc.Services
	cfg         Config
	log         *slog.Logger
	coordinator *coordinator.Coordinator
	upkeep      *Upkeep
	metrics     *telemetry.Metrics
	guard       atomic.Pointer[connlimit.Guard] // of the newest server; nil before the first
}

// New returns a tracker that resumes from the state in the store.
func New(cfg Config) (*Tracker, error) {
	cfg.setDefaults()
	if cfg.Store == nil {
		return nil, errors.New("tracker needs a records store")
	}
	file, _ := cfg.Store.(records.File)
	if file == nil && cfg.Backups.Dir != "" {
		return nil, errors.New("a store that keeps no file cannot be backed up: choose another store, or no backups; a database has pg_dump")
	}
	t := &Tracker{cfg: cfg, log: cfg.Logger}
	artifacts := cfg.Artifacts
	artifacts.Dir = cfg.ArtifactsDir
	var err error
	t.coordinator, err = coordinator.New(coordinator.Config{
		State: cfg.state(), Store: cfg.Store, Artifacts: artifacts, Calls: cfg.Limits.Calls, Watches: cfg.Limits.Watches,
		Observe: func(f state.Fact) { t.metrics.Observe(f) }, Failing: cfg.Failing,
	})
	if err != nil {
		return nil, err
	}
	t.metrics = telemetry.New(cfg.Registerer, t.sources())
	telemetry.Active(cfg.Registerer, true)
	telemetry.Shards(cfg.Registerer, cfg.Shard.Count)
	t.upkeep = &Upkeep{
		File: file, Policy: cfg.Backups, ScrubBytes: cfg.Artifacts.ScrubBytes, Logger: cfg.Logger,
		Now: cfg.Now, Clock: cfg.Clock, Observer: t.metrics, backups: make(chan struct{}, 1),
	}
	t.Services = rpc.New(t.coordinator, cfg.Shard, t.upkeep, t.metrics, &rpc.Releases{Dir: cfg.ReleasesDir}, cfg.Logger)
	if err := t.coordinator.Recover(); err != nil {
		return nil, fmt.Errorf("recover the tracker's state: %w", err)
	}
	return t, nil
}

// sources returns the sources of the metrics.
func (t *Tracker) sources() telemetry.Sources {
	from := telemetry.Sources{
		State: func() (f state.Figures) {
			t.coordinator.Read(func(m *state.Machine) { f = m.Figures() })
			return f
		},
		Jobs: func(limit int) (jobs []state.JobFigures) {
			t.coordinator.Read(func(m *state.Machine) { jobs = m.OldestJobs(limit) })
			return jobs
		},
		Devices: func(limit int) (states map[tilthv1.DeviceState]int, warned int, furthest []state.DeviceFigures) {
			t.coordinator.Read(func(m *state.Machine) { states, warned, furthest = m.Devices(limit) })
			return states, warned, furthest
		},
		Streams: t.coordinator.Watches().Count, Store: t.cfg.Store, Artifacts: t.coordinator.Artifacts().Stats, FreeBytes: t.coordinator.FreeBytes,
		RequestBytes: t.held((*connlimit.Guard).HeldBytes), AnswerBytes: t.held((*connlimit.Guard).AnswerBytes),
	}
	from.File, _ = t.cfg.Store.(records.File)
	from.Remote, _ = t.cfg.Store.(records.Remote)
	if t.cfg.Backups.Dir != "" {
		from.BackupEvery = t.cfg.Backups.Every
	}
	if tls := t.cfg.Security.TLS; tls != nil {
		from.CertificateExpiry = tls.NotAfter
	}
	if issuer := t.cfg.Security.OIDC; issuer != nil {
		from.IssuerKeysRead = issuer.KeysRead
	}
	return from
}

// held returns a function that reads a figure of the server's guard; 0 before there is a server.
func (t *Tracker) held(bytes func(*connlimit.Guard) int64) func() int64 {
	return func() int64 {
		if g := t.guard.Load(); g != nil {
			return bytes(g)
		}
		return 0
	}
}

// Run does periodic work and maintains the records file until ctx ends or the store fails; it returns the store's
// error. When Run returns, long polls and streams have ended.
func (t *Tracker) Run(ctx context.Context) error {
	defer t.Close()
	ctx, stop := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	defer keeping.Wait()
	defer stop()
	keeping.Go(func() { t.upkeep.Run(ctx) })
	return t.coordinator.Run(ctx)
}

// Close ends long polls and streams, so that a server can stop gracefully.
func (t *Tracker) Close() { t.coordinator.Close() }

// Default timeouts and limits of a tracker.
const (
	DefaultHeartbeat    = 5 * time.Second
	DefaultLeaseTimeout = 30 * time.Second
	DefaultGrace        = 2 * time.Minute
	DefaultOutageWait   = 2 * time.Minute
	DefaultSearchTurn   = 2 * time.Minute
	DefaultMaxAttempts  = 4
)
