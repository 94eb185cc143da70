package tracker

import (
	"container/list"
	"context"
	"time"

	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// LeaseWork implements tilthv1.AgentServiceServer.
func (t *Tracker) LeaseWork(ctx context.Context, req *tilthv1.LeaseWorkRequest) (*tilthv1.LeaseWorkResponse, error) {
	wait := req.GetWait().AsDuration()
	if wait < 0 || wait > wire.LongestWait {
		return nil, invalid("wait", "is %v, not between 0 and %v", wait, wire.LongestWait)
	}
	t.mu.Lock()
	a, err := t.live(req.GetSession())
	if err != nil {
		t.mu.Unlock()
		return nil, err
	}
	response, pending := t.grantNow(a)
	if response != nil || wait == 0 {
		t.mu.Unlock()
		return t.granted(ctx, response, pending)
	}
	if err := t.roomForWait(a); err != nil {
		t.mu.Unlock()
		return nil, err
	}
	w := &waiter{agent: a, places: map[*queue]*list.Element{}, granted: make(chan struct{})}
	w.waitIn(t)
	t.mu.Unlock()
	return t.await(ctx, w, wait)
}

// await waits until the waiter is granted work, its time is up or its call ends.
func (t *Tracker) await(ctx context.Context, w *waiter, wait time.Duration) (*tilthv1.LeaseWorkResponse, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-w.granted:
	case <-timer.C:
	case <-ctx.Done():
	case <-t.closing:
	}
	t.mu.Lock()
	w.leave()
	t.mu.Unlock()
	// From here on nobody grants to this waiter, but somebody may have just now.
	select {
	case <-w.granted:
		if w.err != nil {
			return nil, w.err
		}
		return t.granted(ctx, w.response, w.pending)
	default:
	}
	if ctx.Err() != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return &tilthv1.LeaseWorkResponse{}, nil
}

// granted answers with a lease once it is on disk; nobody to answer hands it back.
func (t *Tracker) granted(ctx context.Context, response *tilthv1.LeaseWorkResponse, p *records.Pending) (*tilthv1.LeaseWorkResponse, error) {
	if response == nil {
		return &tilthv1.LeaseWorkResponse{}, nil
	}
	err := t.wait(ctx, p)
	if err == nil {
		err = status.FromContextError(ctx.Err()).Err()
	}
	if err == nil {
		return response, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.lookUp(response.GetLease()); w != nil && ctx.Err() != nil {
		_, _ = t.apply(func(c *change) error {
			c.giveBack(w, "never got it")
			return nil
		})
	}
	return nil, err
}
