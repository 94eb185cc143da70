package tracker

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// Keep says how long jobs are kept that have ended. The oldest go first, with their events; records stay. Zero fields
// have the defaults of their comments, negative ones are no bound. What an owner may have stored bounds them too; see
// Share.
type Keep struct {
	// Jobs of each owner; 1000.
	Jobs int
	// Age since a job ended; 90 days.
	Age time.Duration
}

func (k Keep) withDefaults() Keep {
	return Keep{Jobs: cmp.Or(k.Jobs, 1000), Age: cmp.Or(k.Age, 90*24*time.Hour)}
}

// Why a job is no longer there.
const (
	droppedDeleted = "deleted" // by who may
	droppedCount   = "count"   // its owner has newer ones, as many as are kept, or all owners have
	droppedBytes   = "bytes"   // the same of what is stored
	droppedAge     = "age"
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
func (c *change) superfluous(owner string) (j *endedJob, why string) {
	l, keep := c.cfg.Limits, c.cfg.Keep
	if own := c.archive.byOwner[owner]; own != nil {
		oldest := own.Front().Value.(*endedJob)
		if keep.Jobs >= 0 && own.Len() > keep.Jobs {
			return oldest, droppedCount
		}
		if may := c.cfg.Shares.Of(owner).StoredBytes; may > 0 && c.usageOf(owner).storedBytes+own.bytes > may {
			return oldest, droppedBytes
		}
	}
	front := c.archive.all.Front()
	switch {
	case front == nil:
		return nil, ""
	case c.archive.all.Len() > l.Ended:
		return front.Value.(*endedJob), droppedCount
	case c.archive.bytes > l.EndedBytes:
		return front.Value.(*endedJob), droppedBytes
	case keep.Age >= 0 && c.cfg.Now().Sub(front.Value.(*endedJob).at) > keep.Age:
		return front.Value.(*endedJob), droppedAge
	}
	return nil, ""
}

// dropEnded drops a job; its events go later, and its records stay.
func (c *change) dropEnded(j *endedJob, why string) {
	c.archive.remove(j)
	c.write.DropJob(j.id)
	c.write.OnCommitted(c.wakeSweeper)
	c.metrics.dropped.WithLabelValues(why).Inc()
	c.log.Info("ended job dropped", "job", j.id, "owner", j.owner, "why", why, "ended", j.at, "bytes", j.bytes)
}

// retainAll drops what is not kept of a file that another tracker left, or that was kept by other rules.
func (t *Tracker) retainAll() (err error) {
	owners := make([]string, 0, len(t.archive.byOwner))
	for owner := range t.archive.byOwner {
		owners = append(owners, owner)
	}
	for _, owner := range append(owners, "") {
		for before := -1; before != len(t.archive.byID); {
			before = len(t.archive.byID)
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
