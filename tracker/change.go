package tracker

import (
	"context"
	"errors"

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
	// Jobs and batches whose rows changed.
	touched map[*job]struct{}
	moved   map[*batch]struct{}
	// Classes whose queues grew.
	dirty map[class]struct{}
}

// update runs one call: step checks everything before it changes anything, and an error of it changes nothing. update
// returns when the change, and all that came before it, is on disk.
func (t *Tracker) update(ctx context.Context, step func(c *change) error) error {
	t.mu.Lock()
	pending, err := t.apply(step)
	t.mu.Unlock()
	if err != nil {
		return err
	}
	return t.wait(ctx, pending)
}

// apply makes a change and hands it to the store, then gives the work that it freed to agents that wait. The caller
// holds the lock.
func (t *Tracker) apply(step func(c *change) error) (*records.Pending, error) {
	c := &change{
		Tracker: t, write: &records.Write{},
		touched: map[*job]struct{}{}, moved: map[*batch]struct{}{}, dirty: map[class]struct{}{},
	}
	if err := step(c); err != nil {
		return nil, err
	}
	for j := range c.touched {
		c.write.PutJob(j.row())
		c.write.OnCommitted(func() { t.watches.notify(j.id) })
	}
	for b := range c.moved {
		c.write.PutBatch(b.id, b.row())
	}
	pending := t.db.Commit(c.write)
	for class := range c.dirty {
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

func (c *change) now() *timestamppb.Timestamp { return timestamppb.New(c.cfg.Now()) }

// event gives an event the next number of its job.
func (c *change) event(j *job) *tilthv1.JobEvent {
	j.lastSequence++
	c.touch(j)
	return &tilthv1.JobEvent{Sequence: j.lastSequence, At: c.now()}
}

// touch has the job's row stored with the change, and its watchers told.
func (c *change) touch(j *job) { c.touched[j] = struct{}{} }

// move has the batch's row stored with the change.
func (c *change) move(b *batch) { c.moved[b] = struct{}{} }
