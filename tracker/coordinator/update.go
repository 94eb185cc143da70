package coordinator

import (
	"context"
	"errors"

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
