package state

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// Expire takes back sessions and leases that were not renewed. It must be called at every tick, since awake relies on
// the interval.
func (c *Change) Expire() {
	c.passTime(c.cfg.Now())
	now, last := c.cfg.Clock(), c.lastTick
	if !c.awake(now) {
		return
	}
	c.endAbandoned(now, now.Sub(last))
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
			// Entries queued for its session, or for a predecessor of a rejoined agent, are ignored.
			if now.After(a.deadline) && c.agents[a.name()] == a {
				c.forget(a)
			}
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

// outage is a period in which most agents are silent.
type outage struct {
	// until is when the tracker stops waiting for them, by Clock.
	until time.Time
	// shownSince and shownUntil are the period by the wall clock.
	shownSince, shownUntil time.Time
	silent, agents         int
}

// minSilent is the number of silent agents that an outage requires, besides a majority. With two agents, two dead
// ones look like a broken network, and little is lost either way.
const minSilent = 3

// verdict decides what happens to overdue agents.
type verdict int

const (
	// outageNone removes them as usual.
	outageNone verdict = iota
	// outageWait waits for them.
	outageWait
	// outageOver requeues their work without blame, because they did not return in time.
	outageOver
)

// judgeOutage interprets silence. When most agents vanish at once, the network or the tracker's own machine is the
// likely cause, and taking back all work would do more harm than waiting.
func (c *Change) judgeOutage(now time.Time, overdue bool) verdict {
	if !overdue && c.outage == nil {
		return outageNone
	}
	silent := c.silent(now)
	majority := silent >= minSilent && 2*silent > len(c.sessions)
	switch o := c.outage; {
	case !majority && o == nil:
		return outageNone
	case !majority:
		c.log.Info("most agents are back", "silent", silent, "agents", len(c.sessions))
		c.Machine.outage = nil
		return outageNone
	case o == nil:
		wall := c.cfg.Now()
		c.Machine.outage = &outage{
			until: now.Add(c.cfg.OutageWait), shownSince: wall, shownUntil: wall.Add(c.cfg.OutageWait),
			silent: silent, agents: len(c.sessions),
		}
		c.addFact(OutageBegan)
		c.log.Error("outage: most agents stopped sending heartbeats; waiting for them", "silent", silent, "agents", len(c.sessions),
			"wait_seconds", c.cfg.OutageWait.Seconds())
		return outageWait
	case now.Before(o.until):
		o.silent, o.agents = silent, len(c.sessions)
		return outageWait
	}
	c.log.Error("outage is over: silent agents lose their leases", "silent", silent, "agents", len(c.sessions))
	c.Machine.outage = nil
	return outageOver
}

// silent counts the agents that are silent for more than half a lease timeout. Agents that fell silent together are
// all counted by the time the first is overdue.
func (m *Machine) silent(now time.Time) (n int) {
	for _, a := range m.sessions {
		if now.Sub(a.heard) > m.cfg.LeaseTimeout/2 {
			n++
		}
	}
	return n
}

// Outage returns the outage as clients see it, or nil.
func (m *Machine) Outage() *tilthv1.Outage {
	o := m.outage
	if o == nil {
		return nil
	}
	return &tilthv1.Outage{
		Since: timestamppb.New(o.shownSince), Until: timestamppb.New(o.shownUntil),
		Silent: uint32(o.silent), Agents: uint32(o.agents),
	}
}

// With several shards, an agent has a session with the machine of each. Machines learn of each other's work only
// through the agents' heartbeats.

// waitingWeight returns the total weight of the owners with work in the queue and of the owner of the item just taken.
func (m *Machine) waitingWeight(q *queue, taken work) float64 {
	weight := func(owner string) float64 { return m.cfg.Shares.Of(owner).Weight }
	own := taken.parent().spec.GetOwner()
	sum := weight(own)
	q.work.EachWaiting(func(owner string, _ int) {
		if owner != own {
			sum += weight(owner)
		}
	})
	return sum
}

// waitsFor reports whether work that the agent accepts is queued.
func (m *Machine) waitsFor(a *agent) bool {
	return m.cfg.Shards > 1 && slices.ContainsFunc(a.offers, func(c class) bool {
		q := m.queues[c]
		return q != nil && q.work.Len() > 0
	})
}

// endTurnElsewhere takes a job from a tuner that has held it for a turn while jobs wait for the tuner in another
// shard. It ends one turn at most: many tuners may be reporting the same waiting job.
func (c *Change) endTurnElsewhere() {
	for _, class := range slices.SortedFunc(maps.Keys(c.queues), class.compare) {
		if class.kind != tilthv1.AgentKind_AGENT_KIND_TUNER || class.reads {
			continue
		}
		for _, l := range c.queues[class].held() {
			if l.agent.wanted && c.cfg.Clock().Sub(l.granted) >= c.cfg.SearchTurn {
				l.agent.wanted = false
				c.giveUpTurn(l.work.(*job))
				return
			}
		}
	}
}

// deadlines is a heap of the sessions, leases and closed batches that are due for a check. An extended deadline is
// noticed only when the old one passes, so a heartbeat does not touch the heap. A lease that ends is removed at once:
// otherwise its entry would retain the batch until it was due.
type deadlines struct{ policy.Heap[*deadline] }

// deadline is the due time of an agent, a lease or a range of closed batches; exactly one of them is set.
type deadline struct {
	at     time.Time
	agent  *agent
	lease  *lease
	closed *closedRange
	place  int
}

func newDeadlines() deadlines {
	return deadlines{policy.NewHeap(func(a, b *deadline) bool { return a.at.Before(b.at) }, func(d *deadline) *int { return &d.place })}
}

// agent schedules a check of an agent.
func (d *deadlines) agent(a *agent) { heap.Push(d, &deadline{at: a.deadline, agent: a}) }

// lease schedules a check of a lease.
func (d *deadlines) lease(l *lease) {
	l.due = &deadline{at: l.deadline, lease: l}
	heap.Push(d, l.due)
}

// drop removes a lease that has ended.
func (d *deadlines) drop(l *lease) {
	if l.due.place >= 0 {
		heap.Remove(d, l.due.place)
	}
}

// closed schedules the removal of a range of closed batches.
func (d *deadlines) closed(r closedRange, at time.Time) { heap.Push(d, &deadline{at: at, closed: &r}) }

// next removes and returns an entry due before now; ok is false if the heap has no such entry.
func (d *deadlines) next(now time.Time) (due *deadline, ok bool) {
	if d.Len() == 0 || !now.After(d.All[0].at) {
		return nil, false
	}
	return heap.Pop(d).(*deadline), true
}
