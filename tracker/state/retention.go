package state

import (
	"github.com/tilth-dev/tilth/tracker/policy/retention"
)

// droppedAtOnce bounds the jobs that are dropped by one change.
const droppedAtOnce = 100

// PassAge drops jobs that have become too old.
func (c *Change) PassAge() { c.retainOf("") }

// Retain drops what an owner (empty = all owners together) has too much of, a bounded number at once.
func (c *Change) Retain(owner string) { c.retainOf(owner) }

// Ended is how many ended jobs are kept, and of whom.
func (m *Machine) Ended() (jobs int, owners []string) { return m.archive.Len(), m.archive.Owners() }

// retainOf has what an owner has too much of dropped by the change, after the rows that it changes were written.
func (c *Change) retainOf(owner string) { c.retains = append(c.retains, owner) }

// retain drops what an owner has too much of, or all have, a bounded number.
func (c *Change) retain(owner string) {
	for range droppedAtOnce {
		if j, why := c.superfluous(owner); j != nil {
			c.dropEnded(j, why)
		} else {
			return
		}
	}
}

// superfluous is an ended job that is not kept, and why; nil when all are.
func (c *Change) superfluous(owner string) (j *retention.Job, why string) {
	room := int64(-1)
	if may := c.cfg.Shares.Of(owner).StoredBytes; may > 0 {
		room = max(may-c.usageOf(owner).StoredBytes, 0)
	}
	rules := retention.Rules{Keep: c.cfg.Keep, Ended: c.cfg.Limits.Ended, EndedBytes: c.cfg.Limits.EndedBytes}
	return rules.Superfluous(c.archive, owner, room, c.cfg.Now())
}

// dropEnded drops a job; its events go later, and its records stay.
func (c *Change) dropEnded(j *retention.Job, why string) {
	c.archive.Remove(j)
	c.write.DropJob(j.ID)
	c.lapsed++
	c.effects.Dropped = true
	c.tell(Dropped(why))
	c.log.Info("ended job dropped", "job", j.ID, "owner", j.Owner, "why", why, "ended", j.Ended, "bytes", j.Bytes)
}
