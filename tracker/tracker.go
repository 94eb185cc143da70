package tracker

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"

	"github.com/tilth-dev/tilth/access/connlimit"
	"github.com/tilth-dev/tilth/artifact"
	"github.com/tilth-dev/tilth/internal/wire/bounds"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/policy/drift"
	"github.com/tilth-dev/tilth/tracker/policy/quota"
	"github.com/tilth-dev/tilth/tracker/policy/retention"
)

// Config is what a tracker needs. Store and ArtifactsDir are required; every other field has a default.
type Config struct {
	// Store is the open records file; the caller closes it after the tracker's servers have stopped.
	Store *records.DB
	// ArtifactsDir holds the artifacts.
	ArtifactsDir string
	// Artifacts bound them; Dir, Damaged, Logger and Now are set here.
	Artifacts artifact.Options
	// Logger hears of what happens to jobs, agents and leases; nil = nobody.
	Logger *slog.Logger
	// Registerer takes the metrics; nil = none are kept.
	Registerer prometheus.Registerer
	// Now is the wall's clock, for stamps; nil = time.Now.
	Now func() time.Time
	// Clock is what deadlines are judged by; nil = time.Now, which goes on evenly when the wall's clock is set. Only
	// differences of its times mean anything.
	Clock func() time.Time
	// HeartbeatInterval is how often agents are asked to report while they are few; 0 = 5 s. Beyond a thousand in a
	// second they are asked less often, down to three times in a LeaseTimeout.
	HeartbeatInterval time.Duration
	// LeaseTimeout is how long a lease or a session lives without a heartbeat; 0 = 30 s.
	LeaseTimeout time.Duration
	// Grace is how long leases and sessions from before a restart live without a heartbeat; 0 = 2 min.
	Grace time.Duration
	// Security says who may call, and keeps peers within limits; the zero value lets everybody do everything.
	Security Security
	// OutageWait is how long leases and sessions live on when most agents fall silent at once; 0 = 2 min.
	OutageWait time.Duration
	// MaxAttempts bounds how often a batch, or a job that makes no progress, is tried; 0 = 4. Attempts that are blamed
	// on an agent alone do not count, up to four times as many in all.
	MaxAttempts uint32
	// FirstRetry and MaxRetry bound the wait before work that failed is tried again, which doubles with each failure;
	// 0 = 1 s and 1 min. A negative FirstRetry is none.
	FirstRetry, MaxRetry time.Duration
	// FirstRest and MaxRest bound how long an agent whose leases all fail is given nothing; 0 = 10 s and 5 min.
	FirstRest, MaxRest time.Duration
	// SearchTurn is how long a tuner may hold a job while others wait; 0 = 2 min.
	SearchTurn time.Duration
	// Shares are the owners' weights and quotas; the zero value makes them equal, and unlimited.
	Shares quota.Shares
	// Keep says how long jobs are kept that have ended.
	Keep retention.Keep
	// Limits bound the tracker's memory, and what is stored of all owners' ended jobs.
	Limits Limits
	// Backups says when the records file is backed up, and where; the zero value is never.
	Backups Backups
	// Drift says how devices are judged by their calibrations.
	Drift drift.Policy
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
	c.Drift = c.Drift.WithDefaults()
	if c.Clock == nil {
		c.Clock = time.Now
	}
	c.HeartbeatInterval = cmp.Or(c.HeartbeatInterval, 5*time.Second)
	c.LeaseTimeout = cmp.Or(c.LeaseTimeout, 30*time.Second)
	c.Grace = cmp.Or(c.Grace, 2*time.Minute)
	c.OutageWait = cmp.Or(c.OutageWait, 2*time.Minute)
	c.SearchTurn = cmp.Or(c.SearchTurn, 2*time.Minute)
	c.Limits = c.Limits.withDefaults()
	c.Keep = c.Keep.WithDefaults()
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 4)
	c.FirstRetry, c.MaxRetry = cmp.Or(c.FirstRetry, time.Second), cmp.Or(c.MaxRetry, time.Minute)
	c.FirstRest, c.MaxRest = cmp.Or(c.FirstRest, 10*time.Second), cmp.Or(c.MaxRest, 5*time.Minute)
}

// Tracker implements the tilth.v1 services. Its methods may be called from many goroutines.
type Tracker struct {
	tilthv1.UnimplementedJobServiceServer
	tilthv1.UnimplementedAgentServiceServer
	tilthv1.UnimplementedSearchServiceServer
	tilthv1.UnimplementedBuildServiceServer
	tilthv1.UnimplementedMeasureServiceServer
	tilthv1.UnimplementedRecordServiceServer
	tilthv1.UnimplementedDeviceServiceServer
	tilthv1.UnimplementedRunServiceServer
	tilthv1.UnimplementedAdminServiceServer

	cfg       Config
	log       *slog.Logger
	db        *records.DB
	artifacts *artifact.Store
	metrics   *metrics
	watches   watches
	bounds    *bounds.Checker
	guard     atomic.Pointer[connlimit.Guard] // of the server that was made last; nil before
	health    *health.Server                  // what gRPC's health service says
	// backups holds an element while one is under way.
	backups chan struct{}
	calls   atomic.Int64 // that wait for the disk
	members members

	// sweep holds an element when rows of dropped jobs may be left.
	sweep chan struct{}

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
	requests map[request]*job  // those submitted since the start that have not ended
	batches  map[string]*batch // by id, those under way
	agents   map[string]*agent // by name, all that ever joined
	sessions map[string]*agent // by session, those not void
	gone     list.List         // of *agent, those whose session is void, in the order in which it became so
	queues   map[class]*queue  // work that waits, and agents that wait for it
	leases   map[string]*lease // by subject
	// deadlines of all sessions and leases, and of what is kept for a while only.
	deadlines deadlines
	retries   retries           // work that waits to be tried again
	owners    map[string]*usage // by name, those of jobs that have not ended
	load      load
	archive   *retention.Archive // jobs that have ended

	// When Run last looked at deadlines, and before when none counts.
	lastBeat, patientUntil time.Time
	outage                 *outage               // nil while there is none
	devices                map[string]*device    // by name, all whose runner ever joined
	timed                  map[*device]time.Time // when the state of a device changes by itself
	supplies               *supplies             // as they were at the last beat
	// When the first budget is spent, by the tracker's clock, if all goes on as at the last beat; zero when none will
	// be.
	nextSpent time.Time
}

// New makes a tracker that goes on where the store ends.
func New(cfg Config) (*Tracker, error) {
	cfg.setDefaults()
	if cfg.Store == nil {
		return nil, errors.New("tracker needs a records store")
	}
	checker, err := bounds.New()
	if err != nil {
		return nil, err
	}
	t := &Tracker{
		bounds: checker, cfg: cfg, log: cfg.Logger, db: cfg.Store,
		backups: make(chan struct{}, 1), sweep: make(chan struct{}, 1), closing: make(chan struct{}), failed: make(chan struct{}),
		jobs: map[string]*job{}, requests: map[request]*job{}, batches: map[string]*batch{},
		agents: map[string]*agent{}, sessions: map[string]*agent{},
		queues: map[class]*queue{}, leases: map[string]*lease{}, owners: map[string]*usage{}, health: health.NewServer(), supplies: newSupplies(),
		devices: map[string]*device{}, timed: map[*device]time.Time{},
	}
	t.watches, t.archive = newWatches(), retention.NewArchive()
	if t.artifacts, err = t.openArtifacts(); err != nil {
		return nil, err
	}
	if t.metrics, err = newMetrics(t, cfg.Registerer); err != nil {
		return nil, fmt.Errorf("register the tracker's metrics: %w", err)
	}
	t.db.OnDamage(t.tellDamage)
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
	tilthv1.RegisterDeviceServiceServer(s, t)
	tilthv1.RegisterRunServiceServer(s, t)
	tilthv1.RegisterAdminServiceServer(s, t)
	tilthv1.RegisterArtifactServiceServer(s, artifact.NewService(t.artifacts, callerName))
}

// Run expires what is not kept alive, until ctx ends or the store fails; the latter is its error. Afterwards long
// polls and streams end.
func (t *Tracker) Run(ctx context.Context) error {
	defer t.Close()
	ctx, stop := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	defer keeping.Wait()
	defer stop()
	keeping.Go(func() { t.artifacts.Run(ctx) })
	keeping.Go(func() { t.scrubStore(ctx) })
	keeping.Go(func() { t.sweeper(ctx) })
	keeping.Go(func() { t.keepBackups(ctx) })
	timer := time.NewTimer(t.untilBeat())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			t.storeTime()
			return nil
		case <-t.closing:
			t.storeTime()
			return nil
		case <-t.failed:
			return t.failure
		case <-timer.C:
			t.expire(ctx)
			t.keepTime(ctx)
			t.endTurns(ctx)
			t.passAge(ctx)
			t.serveWaiters()
			timer.Reset(t.untilBeat())
		}
	}
}

// leastBeat is the least time between two beats.
const leastBeat = 10 * time.Millisecond

// untilBeat is the time until the next beat of Run: a second, or less when a budget is spent before.
func (t *Tracker) untilBeat() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	wait := min(time.Second, t.cfg.LeaseTimeout/4)
	if !t.nextSpent.IsZero() {
		wait = min(wait, max(t.nextSpent.Sub(t.cfg.Clock()), leastBeat))
	}
	return wait
}

// Close ends long polls and streams, so that a server can stop gracefully.
func (t *Tracker) Close() {
	t.closeOnce.Do(func() {
		close(t.closing)
		t.health.Shutdown()
	})
}

// fail remembers that the store cannot be written: the memory is ahead of it for good.
func (t *Tracker) fail(err error) {
	t.failOnce.Do(func() {
		t.log.Error("the records file cannot be written, stopping", "error", err)
		t.failure = err
		close(t.failed)
	})
}
