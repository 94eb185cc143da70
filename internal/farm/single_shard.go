package farm

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/tilth-dev/tilth/internal/retry"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// single serves a store with one shard, or stands by while another process does.
type single struct {
	cfg  TrackerConfig
	kind StoreKind
	by   closers // answers calls while the tracker stands by; nil otherwise
	// standby is the part of by that reports the reason.
	standby *tracker.Standby
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
	if s.by != nil {
		s.standby.SetWaiting(away)
		return nil
	}
	own := s.cfg.Security
	own.AuditFile, own.AuditTo = "", nil
	security, closer, err := own.open(s.cfg.Tracker.Logger)
	if err != nil {
		return fmt.Errorf("tracker: %w", err)
	}
	rpc, web, err := listen(s.cfg)
	if err != nil {
		return errors.Join(err, closer.Close())
	}
	by, err := tracker.StandBy(security, s.cfg.Tracker.Logger, newRegistry(s.cfg.Build), rpc, web)
	if err != nil {
		return errors.Join(err, rpc.Close(), closeListener(web), closer.Close())
	}
	by.SetWaiting(away)
	s.by, s.standby = closers{by, closer}, by
	return nil
}

func (s *single) stopAnswering() error {
	by := s.by
	s.by, s.standby = nil, nil
	return by.Close()
}

func closeListener(lis net.Listener) error {
	if lis == nil {
		return nil
	}
	return lis.Close()
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
