package coordinator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// Update runs one operation. The step must check everything before it modifies anything: if it returns an error,
// nothing has changed. Update returns once the change, and everything before it, is on disk. Its errors are refusals
// or the context's.
func (e *Coordinator) Update(ctx context.Context, step func(c *state.Change) error) error {
	if n := e.calls.Add(1); n > int64(e.cfg.Calls) {
		e.calls.Add(-1)
		return state.RefuseOf(state.Overloaded, "calls", "%d calls wait for the tracker's disk: try again", n-1)
	}
	defer e.calls.Add(-1)
	if err := e.refuseAway(); err != nil {
		return err
	}
	e.mu.Lock()
	if ctx.Err() != nil { // the caller has gone, and nothing has happened
		e.mu.Unlock()
		return ctx.Err()
	}
	pending, err := e.apply(step)
	e.mu.Unlock()
	if err != nil {
		return err
	}
	err = e.wait(ctx, pending)
	// gofail: var beforeAnswer struct{}
	return err
}

// unfailing returns the step of an operation that cannot fail.
func unfailing(step func(c *state.Change)) func(c *state.Change) error {
	return func(c *state.Change) error {
		step(c)
		return nil
	}
}

// apply makes a change and carries out its effects and those of the leases that follow. The caller must hold the lock.
func (e *Coordinator) apply(step func(c *state.Change) error) (*records.Pending, error) {
	own, err := e.machine.Apply(step)
	return e.carryOut(own), err
}

// carryOut carries out all pending effects of the machine. It returns the pending write of own. The caller must hold
// the lock.
func (e *Coordinator) carryOut(own *state.Effects) (pending *records.Pending) {
	for _, effects := range e.machine.Effects() {
		p := e.commit(effects)
		if effects == own {
			pending = p
		}
		if g := effects.Grant; g != nil && g.To != nil {
			e.answer(g.To, lease{response: g.Response, pending: p})
		}
	}
	return pending
}

// commit hands a change to the store.
func (e *Coordinator) commit(effects *state.Effects) *records.Pending {
	for _, fact := range effects.Facts {
		e.cfg.Observe(fact)
	}
	for _, w := range effects.Void {
		e.answer(w, lease{err: state.RefuseSession(w.Session())})
	}
	for job, events := range effects.Events {
		effects.Write.OnCommitted(func() { e.watches.publish(job, events) })
	}
	if effects.Dropped {
		effects.Write.OnCommitted(e.wakeSweeper)
	}
	return e.store.Commit(effects.Write)
}

// wait waits for the store.
func (e *Coordinator) wait(ctx context.Context, p *records.Pending) error {
	err := p.Wait(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !errors.Is(err, records.ErrClosed) {
		e.fail(err)
	}
	return state.Refuse(state.Stopping, "tracker is stopping: %v", err)
}

// Run runs periodic work until ctx ends or the store fails; it returns the store's error. When Run returns, long polls
// and streams have ended.
func (e *Coordinator) Run(ctx context.Context) error {
	defer e.Close()
	ctx, stop := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	defer keeping.Wait()
	defer stop()
	keeping.Go(func() { e.artifacts.Run(ctx) })
	keeping.Go(func() { e.sweeper(ctx) })
	timer := time.NewTimer(e.untilTick())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			e.storeTime()
			return nil
		case <-e.closing:
			e.storeTime()
			return nil
		case <-e.failed:
			return e.failure
		case <-timer.C:
			e.tick(ctx)
			timer.Reset(e.untilTick())
		}
	}
}

// minTick is the minimum interval between two ticks.
const minTick = 10 * time.Millisecond

// untilTick returns the time until the next tick: one second, or less if a time budget runs out earlier.
func (e *Coordinator) untilTick() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	wait := min(time.Second, e.cfg.State.LeaseTimeout/4)
	if spent, ok := e.machine.UntilBudgetSpent(); ok {
		wait = min(wait, max(spent, minTick))
	}
	return wait
}

// tick runs the periodic operations, each in a change of its own. It skips ticks while the store's server is away; the
// tracker counts as stopped during that time.
func (e *Coordinator) tick(ctx context.Context) {
	if e.away() {
		return
	}
	for _, b := range []struct {
		step   func(c *state.Change)
		failed string
	}{
		{(*state.Change).Expire, "expiry not stored"},
		{(*state.Change).ChargeTime, "budget time not stored"},
		{(*state.Change).EndTurns, "the end of turns not stored"},
		{(*state.Change).DropAged, "old jobs not dropped"},
	} {
		if err := e.Update(ctx, unfailing(b.step)); err != nil && ctx.Err() == nil {
			e.log.Error(b.failed, "error", err)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.machine.ServeWaiters()
	e.carryOut(nil)
}

// storeTime stores the time counted since it was last stored.
func (e *Coordinator) storeTime() {
	if err := e.Update(context.Background(), unfailing((*state.Change).StoreTime)); err != nil {
		e.log.Warn("budget time not stored", "error", err)
	}
}

func (e *Coordinator) wakeSweeper() {
	select {
	case e.sweep <- struct{}{}:
	default:
	}
}

// sweeper removes leftover rows of dropped jobs until ctx ends.
func (e *Coordinator) sweeper(ctx context.Context) {
	e.wakeSweeper() // an earlier process may have left some
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.closing:
			return
		case <-e.sweep:
		}
		if err := e.store.Sweep(ctx); err != nil && ctx.Err() == nil {
			e.log.Error("events of dropped jobs not removed", "error", err)
		}
	}
}

// minFreeBytes is the free disk space below which the tracker is not ready. The records file grows in steps of 16
// MiB, and a tracker with a full disk stops.
const minFreeBytes = 64 << 20

// Alive returns an error once the store has failed, since memory is then ahead of it for good.
func (e *Coordinator) Alive() error {
	select {
	case <-e.failed:
		if e.remote != nil {
			return errors.New("the database cannot be written, see the log and restart the tracker")
		}
		return errors.New("the records file cannot be written, see the log: free some disk space and restart the tracker")
	default:
		return nil
	}
}

// Ready returns an error unless a write would succeed now. The presence of agents does not matter: they reach the
// tracker through the load balancer that asks this.
func (e *Coordinator) Ready(ctx context.Context) error {
	if err := e.Alive(); err != nil {
		return err
	}
	select {
	case <-e.closing:
		return errors.New("the tracker is stopping")
	default:
	}
	if e.away() {
		return records.ErrAway
	}
	if err := e.artifacts.Unavailable(); err != nil {
		return err
	}
	if err := e.store.Commit(&records.Write{}).Wait(ctx); err != nil { // waits for everything before it
		return fmt.Errorf("the records file is not written: %w", err)
	}
	if f, err := os.Open(os.DevNull); err != nil {
		return fmt.Errorf("the process lacks file descriptors (%w): raise its limit on open files", err)
	} else if err := f.Close(); err != nil {
		return err
	}
	free, err := e.FreeBytes()
	if err != nil {
		return errors.New("the disk of the records cannot be looked at")
	}
	if free < minFreeBytes {
		return fmt.Errorf("the disk of the records has %s left, less than %s: free some space", humanize.Bytes(free), humanize.Bytes(minFreeBytes))
	}
	return nil
}

// FreeBytes returns the free space for records or artifacts, whichever is less.
func (e *Coordinator) FreeBytes() (int64, error) {
	artifacts, err := filesystem.FreeBytes(e.cfg.Artifacts.Dir)
	file, ok := e.store.(records.File)
	if err != nil || !ok {
		return artifacts, err
	}
	own, err := filesystem.FreeBytes(file.Path())
	return min(own, artifacts), err
}
