package engine

import (
	"context"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// lease is what a request for work came to: a lease that is handed to the store, none, or why there is none.
type lease struct {
	response *tilthv1.LeaseWorkResponse
	pending  *records.Pending
	err      error
}

// wait is a request for work that waits; answered is closed once lease is set.
type wait struct {
	answered chan struct{}
	lease
}

// answer ends a wait. The caller holds the lock.
func (e *Engine) answer(w *state.Waiter, l lease) {
	if waiting := e.waits[w]; waiting != nil {
		waiting.lease = l
		close(waiting.answered)
		delete(e.waits, w)
	}
}

// Lease leases work to the agent of a session; it waits for some so long, unless EndWait names it. The response is
// empty when there was none.
func (e *Engine) Lease(ctx context.Context, session, name string, patience time.Duration) (*tilthv1.LeaseWorkResponse, error) {
	if err := e.refuseAway(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	effects, err := e.machine.Lease(session)
	pending := e.carryOut(effects)
	if err != nil {
		e.mu.Unlock()
		return nil, err
	}
	if effects != nil || patience == 0 {
		e.mu.Unlock()
		if effects == nil {
			return &tilthv1.LeaseWorkResponse{}, nil
		}
		return e.granted(ctx, effects.Grant.Response, pending)
	}
	waiter, err := e.machine.Wait(session, name)
	if err != nil {
		e.mu.Unlock()
		return nil, err
	}
	w := &wait{answered: make(chan struct{})}
	e.waits[waiter] = w
	e.mu.Unlock()
	return e.await(ctx, waiter, w, patience)
}

// await waits until the waiter is granted work, its time is up or its call ends.
func (e *Engine) await(ctx context.Context, waiter *state.Waiter, w *wait, patience time.Duration) (*tilthv1.LeaseWorkResponse, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.answered:
	case <-timer.C:
	case <-ctx.Done():
	case <-e.closing:
	}
	e.mu.Lock()
	e.machine.GiveUp(waiter)
	delete(e.waits, waiter)
	e.mu.Unlock()
	// From here on nobody grants to this waiter, but somebody may have just now.
	select {
	case <-w.answered:
		if w.pending == nil {
			return w.response, w.err
		}
		return e.granted(ctx, w.response, w.pending)
	default:
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return &tilthv1.LeaseWorkResponse{}, nil
}

// EndWait has a request for work wait no more; false = none of that name waits.
func (e *Engine) EndWait(session, name string) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	waiter, err := e.machine.FindWait(session, name)
	if waiter == nil || err != nil {
		return false, err
	}
	e.machine.GiveUp(waiter)
	e.answer(waiter, lease{response: &tilthv1.LeaseWorkResponse{}})
	return true, nil
}

// granted answers with a lease once it is on disk; nobody to answer hands it back.
func (e *Engine) granted(ctx context.Context, response *tilthv1.LeaseWorkResponse, p *records.Pending) (*tilthv1.LeaseWorkResponse, error) {
	err := e.wait(ctx, p)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		return response, nil
	}
	if ctx.Err() != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		_, _ = e.apply(func(c *state.Change) error {
			c.GiveBack(response.GetLease(), "never got it")
			return nil
		})
	}
	return nil, err
}

// Heartbeat notes the signs of life of an agent and of the leases that it lists, and takes those back that it should
// list and does not. wanted says that work for the agent waits in another shard.
func (e *Engine) Heartbeat(ctx context.Context, session string, listed []*tilthv1.LeaseToken, wanted bool) (*tilthv1.HeartbeatResponse, error) {
	e.mu.Lock()
	response, lost, err := e.machine.Heartbeat(session, listed, wanted)
	if err != nil || len(lost) == 0 {
		e.mu.Unlock()
		return response, err
	}
	pending, _ := e.apply(func(c *state.Change) error {
		c.TakeBack(lost)
		return nil
	})
	e.mu.Unlock()
	return response, e.wait(ctx, pending)
}
