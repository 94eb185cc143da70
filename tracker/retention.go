package tracker

import (
	"context"
	"errors"

	"github.com/tilth-dev/tilth/tracker/policy/retention"
)

// droppedAtOnce bounds the jobs that are dropped by one change.
const droppedAtOnce = 100

// retainOf has what an owner has too much of dropped by the change, after the rows that it changes were written.
func (c *change) retainOf(owner string) { c.retains = append(c.retains, owner) }

// retain drops what an owner has too much of, or all have, a bounded number.
func (c *change) retain(owner string) {
	for range droppedAtOnce {
		if j, why := c.superfluous(owner); j != nil {
			c.dropEnded(j, why)
		} else {
			return
		}
	}
}

// superfluous is an ended job that is not kept, and why; nil when all are.
func (c *change) superfluous(owner string) (j *retention.Job, why string) {
	room := int64(-1)
	if may := c.cfg.Shares.Of(owner).StoredBytes; may > 0 {
		room = max(may-c.usageOf(owner).StoredBytes, 0)
	}
	rules := retention.Rules{Keep: c.cfg.Keep, Ended: c.cfg.Limits.Ended, EndedBytes: c.cfg.Limits.EndedBytes}
	return rules.Superfluous(c.archive, owner, room, c.cfg.Now())
}

// dropEnded drops a job; its events go later, and its records stay.
func (c *change) dropEnded(j *retention.Job, why string) {
	c.archive.Remove(j)
	c.write.DropJob(j.ID)
	c.write.OnCommitted(c.wakeSweeper)
	c.metrics.dropped.WithLabelValues(why).Inc()
	c.log.Info("ended job dropped", "job", j.ID, "owner", j.Owner, "why", why, "ended", j.Ended, "bytes", j.Bytes)
}

// retainAll drops what is not kept of a file that another tracker left, or that was kept by other rules.
func (t *Tracker) retainAll() (err error) {
	for _, owner := range append(t.archive.Owners(), "") {
		for before := -1; before != t.archive.Len(); {
			before = t.archive.Len()
			pending, _ := t.apply(func(c *change) error {
				c.retainOf(owner)
				return nil
			})
			err = errors.Join(err, pending.Wait(context.Background()))
		}
	}
	return err
}

// passAge drops jobs that have become too old.
func (t *Tracker) passAge(ctx context.Context) {
	err := t.update(ctx, func(c *change) error {
		c.retainOf("")
		return nil
	})
	if err != nil && ctx.Err() == nil {
		t.log.Error("old jobs not dropped", "error", err)
	}
}

func (t *Tracker) wakeSweeper() {
	select {
	case t.sweep <- struct{}{}:
	default:
	}
}

// sweeper removes what is left of jobs that were dropped, until ctx ends.
func (t *Tracker) sweeper(ctx context.Context) {
	t.wakeSweeper() // a tracker before may have left some
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.closing:
			return
		case <-t.sweep:
		}
		if err := t.db.Sweep(ctx); err != nil && ctx.Err() == nil {
			t.log.Error("events of dropped jobs not removed", "error", err)
		}
	}
}
