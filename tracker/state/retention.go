package state

import (
	"github.com/tilth-dev/tilth/tracker/policy"
)

// droppedAtOnce bounds the jobs dropped by one change.
const droppedAtOnce = 100

// PassAge drops jobs beyond their maximum age.
func (c *Change) PassAge() { c.retainOf("") }

// Retain drops a bounded number of an owner's ended jobs beyond its limits. An empty owner means all owners together.
func (c *Change) Retain(owner string) { c.retainOf(owner) }

// Ended returns the number of retained ended jobs and their owners.
func (m *Machine) Ended() (jobs int, owners []string) { return m.archive.Len(), m.archive.Owners() }

// retainOf schedules retention for an owner, after the other rows of the change are written.
func (c *Change) retainOf(owner string) { c.retains = append(c.retains, owner) }

// retain drops a bounded number of jobs beyond the limits of an owner, or of all owners if empty.
func (c *Change) retain(owner string) {
	for range droppedAtOnce {
		if j, why := c.superfluous(owner); j != nil {
			c.dropEnded(j, why)
		} else {
			return
		}
	}
}

// superfluous returns an ended job to drop and the reason, or nil.
func (c *Change) superfluous(owner string) (j *policy.RetainedJob, why string) {
	room := int64(-1)
	if may := c.cfg.Shares.Of(owner).StoredBytes; may > 0 {
		room = max(may-c.usageOf(owner).StoredBytes, 0)
	}
	rules := policy.RetentionRules{Retention: c.cfg.Keep, Ended: c.cfg.Limits.Ended, EndedBytes: c.cfg.Limits.EndedBytes}
	return rules.Superfluous(c.archive, owner, room, c.cfg.Now())
}

// dropEnded drops a job. Its events are swept later; its records stay.
func (c *Change) dropEnded(j *policy.RetainedJob, why string) {
	c.archive.Remove(j)
	c.write.DropJob(j.ID)
	c.lapsed++
	c.effects.Dropped = true
	c.addFact(Dropped(why))
	c.log.Info("ended job dropped", "job", j.ID, "owner", j.Owner, "why", why, "ended", j.Ended, "bytes", j.Bytes)
}
