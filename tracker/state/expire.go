package state

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Expire takes back sessions and leases that were not renewed. It must be called at every tick, since awake relies on
// the interval.
func (c *Change) Expire() {
	c.passTime(c.cfg.Now())
	now := c.cfg.Clock()
	if !c.awake(now) {
		return
	}
	c.endAbandoned(now)
	sessions, leases := c.overdue(now)
	verdict := c.judgeOutage(now, len(sessions) > 0)
	if verdict == outageWait {
		return
	}
	take := c.expireLease
	if verdict == outageOver {
		take = c.excuseLease
	}
	for _, a := range sessions {
		c.log.Warn("agent gone", "agent", a.name(), "silent_seconds", now.Sub(a.heard).Seconds())
		c.void(a, take)
	}
	for _, l := range leases {
		if c.leases[l.work.subject()] == l { // its session may just have expired
			take(l.work)
		}
	}
}

// overdue returns the sessions and leases past their deadlines, sorted, and drops data whose retention has ended.
// Entries still overdue are checked again at the next tick, in case they are spared now.
func (c *Change) overdue(now time.Time) (sessions []*agent, leases []*lease) {
	var again []*deadline
	for due, ok := c.deadlines.next(now); ok; due, ok = c.deadlines.next(now) {
		switch a, l := due.agent, due.lease; {
		case due.closed != nil:
			c.write.DropClosed(due.closed.first, due.closed.beyond)
		case a != nil && a.gone:
			c.forgetAgent(a, now)
		case a != nil && c.sessions[a.session] == a:
			due.at = a.deadline
			again = append(again, due)
			if now.After(a.deadline) {
				sessions = append(sessions, a)
			}
		case l != nil:
			due.at = l.deadline
			again = append(again, due)
			if now.After(l.deadline) {
				leases = append(leases, l)
			}
		}
	}
	for _, d := range again {
		heap.Push(&c.deadlines, d)
	}
	slices.SortFunc(sessions, func(a, b *agent) int { return cmp.Compare(a.name(), b.name()) })
	slices.SortFunc(leases, func(a, b *lease) int { return cmp.Compare(a.work.subject(), b.work.subject()) })
	return sessions, leases
}

// awake reports whether the tracker ran without interruption since the previous tick. A stopped process or a suspended
// machine receives no heartbeats, so everything gets the grace period, as after a restart.
func (c *Change) awake(now time.Time) bool {
	last := c.lastTick
	c.Machine.lastTick = now
	if gap := now.Sub(last); !last.IsZero() && (gap > c.cfg.LeaseTimeout/2 || gap < 0) {
		c.Machine.patientUntil = now.Add(c.cfg.Grace)
		c.log.Warn("the tracker was suspended: nothing expires during the grace period",
			"gap_seconds", gap.Seconds(), "grace_seconds", c.cfg.Grace.Seconds())
	}
	return !now.Before(c.patientUntil)
}

func (c *Change) expireLease(w work) {
	a := w.held().lease.agent
	c.addFact(Expired{a.spec.GetKind()})
	c.failAttempt(w, tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA, "lost contact with "+a.name())
}

// excuseLease takes back a lease lost in an outage. It blames neither the work nor the agent.
func (c *Change) excuseLease(w work) {
	c.addFact(Expired{w.held().lease.agent.spec.GetKind()})
	c.giveBack(w, "fell silent with most of the farm")
}

// graceUntil returns when leases and sessions from before a restart expire unless renewed.
func (m *Machine) graceUntil() time.Time { return m.cfg.Clock().Add(m.cfg.Grace) }
