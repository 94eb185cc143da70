package state

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Expire takes back what was not kept alive: sessions with all their leases, and single leases. It is called at every
// beat, of which awake must know.
func (c *Change) Expire() {
	c.passTime(c.cfg.Now())
	now := c.cfg.Clock()
	if !c.awake(now) {
		return
	}
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
		if c.leases[l.work.subject()] == l { // its session may just have gone
			take(l.work)
		}
	}
}

// overdue returns what was silent for too long, by name, and forgets what was kept for a while only. It looks only at
// what was due by now; what is overdue is looked at again at the next beat, in case it is spared.
func (c *Change) overdue(now time.Time) (sessions []*agent, leases []*lease) {
	var again deadlines
	for due, ok := c.deadlines.next(now); ok; due, ok = c.deadlines.next(now) {
		switch a, l := due.agent, due.lease; {
		case due.closed != nil:
			c.write.DropClosed(due.closed.first, due.closed.beyond)
		case a != nil && a.gone:
			c.forgetAgent(a, now)
		case a != nil && c.sessions[a.session] == a:
			again = append(again, deadline{at: a.deadline, agent: a})
			if now.After(a.deadline) {
				sessions = append(sessions, a)
			}
		case l != nil:
			again = append(again, deadline{at: l.deadline, lease: l})
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

// awake says whether the tracker itself was there since the last beat. A process that was stopped, or a machine that
// slept, heard nobody meanwhile: whoever was joined gets the grace, as after a restart.
func (c *Change) awake(now time.Time) bool {
	last := c.lastBeat
	c.Machine.lastBeat = now
	if gap := now.Sub(last); !last.IsZero() && (gap > c.cfg.LeaseTimeout/2 || gap < 0) {
		c.Machine.patientUntil = now.Add(c.cfg.Grace)
		c.log.Warn("the tracker stood still: nothing expires before the grace is over",
			"gap_seconds", gap.Seconds(), "grace_seconds", c.cfg.Grace.Seconds())
	}
	return !now.Before(c.patientUntil)
}

func (c *Change) expireLease(w work) {
	a := w.held().lease.agent
	c.tell(Expired{a.spec.GetKind()})
	c.lose(w, tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA, "lost contact with "+a.name())
}

// excuseLease takes back what was lost with most of the farm: neither the work nor the agent is to blame.
func (c *Change) excuseLease(w work) {
	c.tell(Expired{w.held().lease.agent.spec.GetKind()})
	c.giveBack(w, "fell silent with most of the farm")
}

// graceUntil is when what was held before a restart is lost without a sign of life.
func (m *Machine) graceUntil() time.Time { return m.cfg.Clock().Add(m.cfg.Grace) }
