package coordinator

import (
	"context"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker/state"
)

// lease is the outcome of a request for work: a lease being stored, nothing, or an error.
type lease struct {
	response *tilthv1.LeaseWorkResponse
	pending  *records.Pending
	err      error
}

// wait is a pending request for work; answered is closed once lease is set.
type wait struct {
	answered chan struct{}
	lease
}

// answer completes a pending request. The caller must hold the lock.
func (e *Coordinator) answer(w *state.Waiter, l lease) {
	if waiting := e.waits[w]; waiting != nil {
		waiting.lease = l
		close(waiting.answered)
		delete(e.waits, w)
	}
}

// Lease leases work to the agent of a session. If nothing is queued, it waits up to patience, or until EndWait names
// the request. The response is empty if no work was available.
func (e *Coordinator) Lease(ctx context.Context, session, name string, patience time.Duration) (*tilthv1.LeaseWorkResponse, error) {
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

// await waits until the request is granted, its patience runs out, or its call ends.
func (e *Coordinator) await(ctx context.Context, waiter *state.Waiter, w *wait, patience time.Duration) (*tilthv1.LeaseWorkResponse, error) {
	select {
	case <-w.answered:
	case <-time.After(patience):
	case <-ctx.Done():
	case <-e.closing:
	}
	e.mu.Lock()
	e.machine.CancelWait(waiter)
	delete(e.waits, waiter)
	e.mu.Unlock()
	// No more work can be granted to this waiter now, but a grant may just have happened.
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

// EndWait ends a pending request for work. It reports whether one of that name was pending.
func (e *Coordinator) EndWait(session, name string) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	waiter, err := e.machine.FindWait(session, name)
	if waiter == nil || err != nil {
		return false, err
	}
	e.machine.CancelWait(waiter)
	e.answer(waiter, lease{response: &tilthv1.LeaseWorkResponse{}})
	return true, nil
}

// granted returns a lease once it is on disk. If the caller has gone, it returns the lease.
func (e *Coordinator) granted(ctx context.Context, response *tilthv1.LeaseWorkResponse, p *records.Pending) (*tilthv1.LeaseWorkResponse, error) {
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
		_, _ = e.apply(unfailing(func(c *state.Change) { c.ReturnLease(response.GetLease(), "never received the lease") }))
	}
	return nil, err
}

// Heartbeat renews an agent's session and the leases that it lists, and takes back leases that it should have listed.
func (e *Coordinator) Heartbeat(ctx context.Context, req *tilthv1.HeartbeatRequest) (*tilthv1.HeartbeatResponse, error) {
	e.mu.Lock()
	response, lost, err := e.machine.Heartbeat(req)
	if err != nil || len(lost) == 0 {
		e.mu.Unlock()
		return response, err
	}
	pending, _ := e.apply(unfailing(func(c *state.Change) { c.RequeueLost(lost) }))
	e.mu.Unlock()
	return response, e.wait(ctx, pending)
}
