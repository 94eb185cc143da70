package tracker

import (
	"context"
	"errors"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// change is one step of the state machine: what a call does to the memory, and the same for the store. It exists under
// the tracker's lock.
type change struct {
	*Tracker
	write *records.Write
	at    *timestamppb.Timestamp
	// Jobs whose rows changed, with their new events, and batches whose rows did.
	touched map[*job][]*tilthv1.JobEvent
	moved   map[*batch]struct{}
	// Owners of whose ended jobs the oldest may have to go.
	retains []string
	// Classes whose queues grew.
	dirty map[class]struct{}
}

// update runs one call: step checks everything before it changes anything, and an error of it changes nothing. update
// returns when the change, and all that came before it, is on disk.
func (t *Tracker) update(ctx context.Context, step func(c *change) error) error {
	if n := t.calls.Add(1); n > int64(t.cfg.Limits.Calls) {
		t.calls.Add(-1)
		return t.overloaded("calls", "%d calls wait for the tracker's disk: try again", n-1)
	}
	defer t.calls.Add(-1)
	t.mu.Lock()
	if ctx.Err() != nil { // nobody waits for the answer, and nothing has happened
		t.mu.Unlock()
		return status.FromContextError(ctx.Err()).Err()
	}
	pending, err := t.apply(step)
	t.mu.Unlock()
	if err != nil {
		return err
	}
	err = t.wait(ctx, pending)
	// gofail: var beforeAnswer struct{}
	return err
}

// apply makes a change and hands it to the store, then gives the work that it freed to agents that wait. The caller
// holds the lock.
func (t *Tracker) apply(step func(c *change) error) (*records.Pending, error) {
	c := &change{
		Tracker: t, write: &records.Write{},
		touched: map[*job][]*tilthv1.JobEvent{}, moved: map[*batch]struct{}{}, dirty: map[class]struct{}{},
	}
	if err := step(c); err != nil {
		return nil, err
	}
	for j, events := range c.touched {
		c.write.PutJob(j.row())
		j.stored = j.spent
		if len(events) > 0 {
			c.write.OnCommitted(func() { t.watches.publish(j.id, events) })
		}
	}
	for b := range c.moved {
		c.write.PutBatch(b.id, b.row())
	}
	for _, owner := range c.retains {
		c.retain(owner)
	}
	pending := t.db.Commit(c.write)
	for _, class := range slices.SortedFunc(maps.Keys(c.dirty), class.compare) {
		t.dispatch(class)
	}
	return pending, nil
}

// wait waits for the store.
func (t *Tracker) wait(ctx context.Context, p *records.Pending) error {
	err := p.Wait(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	if !errors.Is(err, records.ErrClosed) {
		t.fail(err)
	}
	return wire.Refuse(codes.Unavailable, wire.ReasonStopping, "tracker is stopping: %v", err)
}

// now is when the change is made: one time for all of it, which nobody changes.
func (c *change) now() *timestamppb.Timestamp {
	if c.at == nil {
		c.at = timestamppb.New(c.cfg.Now())
	}
	return c.at
}

// event gives an event the next number of its job. Whoever fills it in has it stored; watchers are told once it is.
func (c *change) event(j *job) *tilthv1.JobEvent {
	j.lastSequence++
	e := &tilthv1.JobEvent{Sequence: j.lastSequence, At: c.now()}
	c.touched[j] = append(c.touched[j], e)
	return e
}

// touch has the job's row stored with the change.
func (c *change) touch(j *job) {
	if _, already := c.touched[j]; !already {
		c.touched[j] = nil
	}
}

// move has the batch's row stored with the change.
func (c *change) move(b *batch) { c.moved[b] = struct{}{} }
