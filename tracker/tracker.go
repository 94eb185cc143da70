// Package tracker is the holder of the farm's state: jobs, tasks, batches and leases. It is a state machine in memory
// over a records file; agents and clients speak to it over gRPC.
//
// Every call follows one path (see change): under one lock it checks its request, changes the memory and hands the same
// change to the store; it answers when that is on disk. Changes reach the disk in the order in which they were made, so
// nothing that was answered can depend on something that is lost. The tracker never looks inside a workload, a trace or
// an artifact.
package tracker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/artifact"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Config is what a tracker needs. Store and ArtifactsDir are required; every other field has a default.
type Config struct {
	// Store is the open records file; the caller closes it after the tracker's servers have stopped.
	Store *records.DB
	// ArtifactsDir holds the artifacts.
	ArtifactsDir string
	// ArtifactCapBytes bounds the artifacts; 0 = artifact.DefaultCapBytes.
	ArtifactCapBytes int64
	// ArtifactFS writes the artifacts; nil = artifact.OS{}.
	ArtifactFS artifact.FS
	// Logger hears of what happens to jobs, agents and leases; nil = nobody.
	Logger *slog.Logger
	// Registerer takes the metrics; nil = none are kept.
	Registerer prometheus.Registerer
	// Now is the clock; nil = time.Now.
	Now func() time.Time
	// HeartbeatInterval is how often agents are asked to report; 0 = 5 s.
	HeartbeatInterval time.Duration
	// LeaseTimeout is how long a lease or a session lives without a heartbeat; 0 = 30 s.
	LeaseTimeout time.Duration
	// Grace is how long leases and sessions from before a restart live without a heartbeat; 0 = 2 min.
	Grace time.Duration
	// MaxAttempts bounds how often a batch, or a job that makes no progress, is tried; 0 = 4.
	MaxAttempts uint32
}

func (c *Config) setDefaults() {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Registerer == nil {
		c.Registerer = prometheus.NewRegistry()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.HeartbeatInterval == 0 {
		c.HeartbeatInterval = 5 * time.Second
	}
	if c.LeaseTimeout == 0 {
		c.LeaseTimeout = 30 * time.Second
	}
	if c.Grace == 0 {
		c.Grace = 2 * time.Minute
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = 4
	}
}

// Tracker implements the tilth.v1 services. Its methods may be called from many goroutines.
type Tracker struct {
	tilthv1.UnimplementedJobServiceServer
	tilthv1.UnimplementedAgentServiceServer
	tilthv1.UnimplementedSearchServiceServer
	tilthv1.UnimplementedBuildServiceServer
	tilthv1.UnimplementedMeasureServiceServer
	tilthv1.UnimplementedRecordServiceServer

	cfg       Config
	log       *slog.Logger
	db        *records.DB
	artifacts *artifact.Store
	metrics   *metrics
	watches   watches

	// closing ends long polls and streams.
	closing   chan struct{}
	closeOnce sync.Once
	// failed is closed after failure was set: the store could not be written.
	failed   chan struct{}
	failOnce sync.Once
	failure  error

	mu       sync.Mutex
	nextJob  uint64
	jobs     map[string]*job   // by id, those that have not ended
	requests map[string]*job   // by request id, those submitted since the start that have not ended
	batches  map[string]*batch // by id, those under way
	agents   map[string]*agent // by name, all that ever joined
	sessions map[string]*agent // by session, those not void
	queues   map[class]*queue  // work that waits, and agents that wait for it
	leases   map[string]*lease // by subject
}

// New makes a tracker that goes on where the store ends.
func New(cfg Config) (*Tracker, error) {
	cfg.setDefaults()
	if cfg.Store == nil {
		return nil, errors.New("tracker needs a records store")
	}
	store, err := artifact.Open(artifact.Options{
		Dir: cfg.ArtifactsDir, CapBytes: cfg.ArtifactCapBytes, Logger: cfg.Logger, FS: cfg.ArtifactFS,
	})
	if err != nil {
		return nil, err
	}
	t := &Tracker{
		cfg: cfg, log: cfg.Logger, db: cfg.Store, artifacts: store,
		closing: make(chan struct{}), failed: make(chan struct{}),
		jobs: map[string]*job{}, requests: map[string]*job{}, batches: map[string]*batch{},
		agents: map[string]*agent{}, sessions: map[string]*agent{},
		queues: map[class]*queue{}, leases: map[string]*lease{},
	}
	t.watches.byJob = map[string]chan struct{}{}
	if t.metrics, err = newMetrics(t, cfg.Registerer); err != nil {
		return nil, fmt.Errorf("register the tracker's metrics: %w", err)
	}
	if err := t.recover(); err != nil {
		return nil, fmt.Errorf("recover the tracker's state: %w", err)
	}
	return t, nil
}

// Register adds the tracker's services to a server.
func (t *Tracker) Register(s grpc.ServiceRegistrar) {
	tilthv1.RegisterJobServiceServer(s, t)
	tilthv1.RegisterAgentServiceServer(s, t)
	tilthv1.RegisterSearchServiceServer(s, t)
	tilthv1.RegisterBuildServiceServer(s, t)
	tilthv1.RegisterMeasureServiceServer(s, t)
	tilthv1.RegisterRecordServiceServer(s, t)
	tilthv1.RegisterArtifactServiceServer(s, artifact.NewService(t.artifacts))
}

// Run expires what is not kept alive, until ctx ends or the store fails; the latter is its error. Afterwards long polls
// and streams end.
func (t *Tracker) Run(ctx context.Context) error {
	defer t.Close()
	ticker := time.NewTicker(min(time.Second, t.cfg.LeaseTimeout/4))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.closing:
			return nil
		case <-t.failed:
			return t.failure
		case <-ticker.C:
			t.expire(ctx)
		}
	}
}

// Close ends long polls and streams, so that a server can stop gracefully.
func (t *Tracker) Close() { t.closeOnce.Do(func() { close(t.closing) }) }

// fail remembers that the store cannot be written: the memory is ahead of it for good.
func (t *Tracker) fail(err error) {
	t.failOnce.Do(func() {
		t.log.Error("the records file cannot be written, stopping", "error", err)
		t.failure = err
		close(t.failed)
	})
}
