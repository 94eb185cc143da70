package farm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/artifact/s3"
	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// TrackerConfig configures a tracker. Records, Listen, and Tracker's ArtifactsDir and Logger are required.
type TrackerConfig struct {
	// Tracker configures the tracker itself. RunTracker sets its Store, Registerer, Security and Shard.
	Tracker tracker.Config
	// Build is that of this program.
	Build Build
	// Store is the name of a store of StoreKinds, or its address; empty means the default.
	Store string
	// Shards is the number of shards of the store, each held by one tracker at a time; 0 means 1.
	Shards int
	// Records is the records file, if the store uses one.
	Records string
	// ObjectStore is the address of an object store for artifacts (see s3.ParseAddress); empty means a folder.
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
	// Opened, if set, is called with the store before the tracker uses it. It is for the single shard of a local farm.
	Opened func(records.Store)
	// Ready, if set, is called with the served addresses before the first call can arrive, and again whenever
	// a standby tracker starts serving.
	Ready func(rpc, web net.Addr)
}

// RunTracker runs a tracker until ctx ends or its disk fails. It stands by while another tracker holds its
// database, also after another one has taken over.
func RunTracker(ctx context.Context, cfg TrackerConfig) error {
	kind, err := StoreKindOf(cfg.Store)
	if err != nil {
		return fmt.Errorf("tracker: %w", err)
	}
	if cfg.ObjectStore != "" {
		if cfg.Tracker.Artifacts.Blobs, err = openObjects(ctx, cfg.ObjectStore); err != nil {
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

// single serves a store with one shard, or stands by while another process does.
type single struct {
	cfg  TrackerConfig
	kind StoreKind
	// standby answers calls while the tracker stands by, until stopStandby; nil otherwise.
	standby     *tracker.Host
	stopStandby func() error
	// began is set once the process has served or stood by. Errors of the database are then transient. Before
	// that, its address may be wrong.
	began    bool
	away     retry.RepeatedErrors
	versions versions
}

// run serves whenever this process holds the store. It returns nil when ctx ends, or an error if the disk
// fails or the failure is permanent.
func (s *single) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, s.stopAnswering()) }()
	for {
		store, err := s.openStore(ctx)
		if err == nil {
			s.versions.tell(s.cfg.Tracker.Logger, store)
			err = s.serve(ctx, store)
		}
		switch {
		case err == nil || store == nil && ctx.Err() != nil:
			return nil
		case ctx.Err() != nil:
			return err
		case errors.Is(err, records.ErrTakenOver):
			s.cfg.Tracker.Logger.Warn("another tracker has the database now", "error", err)
		case isTransient(err, s.began, store == nil):
			if s.away.Due() {
				s.cfg.Tracker.Logger.Warn("the database cannot be opened, trying again", "error", err)
			}
			if err := s.answer(unreachableService(err)); err != nil {
				return err
			}
			_ = retry.Sleep(ctx, reopenAfter)
		default:
			return err
		}
	}
}

// openStore opens the store once no other tracker holds it.
func (s *single) openStore(ctx context.Context) (records.Store, error) {
	if s.kind.StandBy == nil {
		return s.kind.Open(s.cfg.Store, s.cfg.Records)
	}
	return s.kind.StandBy(ctx, s.cfg.Store, func() error {
		s.cfg.Tracker.Logger.Info("another tracker has the database, standing by", "grpc", s.cfg.Listen, "http", s.cfg.HTTP)
		if err := s.answer(nil); err != nil {
			return err
		}
		s.began, s.away = true, 0
		return nil
	})
}

// answer refuses calls at the tracker's addresses until stopAnswering. away is the unreachable service, or
// nil if another tracker holds the database. Only the serving tracker writes the audit log.
func (s *single) answer(away error) error {
	if s.standby != nil {
		s.standby.SetWaiting(away)
		return nil
	}
	own := s.cfg.Security
	own.AuditFile, own.AuditTo = "", nil
	security, closer, err := own.open(s.cfg.Tracker.Logger)
	if err != nil {
		return fmt.Errorf("tracker: %w", err)
	}
	host := tracker.NewHost(tracker.HostConfig{
		Security: security, Shards: 1, Logger: s.cfg.Tracker.Logger, Metrics: newRegistry(s.cfg.Build), Spread: agent.CallShards,
	})
	rpc, web, err := listen(s.cfg)
	if err != nil {
		return errors.Join(err, closer.Close())
	}
	host.SetWaiting(away)
	life, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- host.Serve(life, rpc, web) }()
	s.standby, s.stopStandby = host, func() error {
		end()
		return errors.Join(<-served, closer.Close())
	}
	return nil
}

func (s *single) stopAnswering() error {
	if s.standby == nil {
		return nil
	}
	s.standby = nil
	return s.stopStandby()
}

// serve serves an open store and closes it. The standby answers until the tracker is ready.
func (s *single) serve(ctx context.Context, store records.Store) (err error) {
	defer func() { err = errors.Join(err, store.Close()) }()
	if s.cfg.Opened != nil {
		s.cfg.Opened(store)
	}
	security, closer, err := s.cfg.Security.open(s.cfg.Tracker.Logger)
	if err != nil {
		return fmt.Errorf("tracker: %w", err)
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	c := s.cfg.Tracker
	c.Store, c.Registerer, c.Security = store, newRegistry(s.cfg.Build), security
	c.Artifacts.Opening = ctx
	t, err := tracker.New(c)
	if err != nil && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("tracker: %w", err)
	}
	if err := s.stopAnswering(); err != nil {
		return err
	}
	rpc, web, err := listen(s.cfg)
	if err != nil {
		return err
	}
	s.began, s.away = true, 0
	if s.cfg.Ready != nil {
		s.cfg.Ready(rpc.Addr(), addrOf(web))
	}
	return t.Serve(ctx, rpc, web)
}
