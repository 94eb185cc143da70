package state

import (
	"container/heap"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker/policy"
)

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

// How long data of temporary use is kept, in memory and in the store.
const (
	// keepGoneDevices is longer, since a board that is missing should be noticed. Builders and tuners come and go
	// under new names.
	keepGoneDevices = 7 * 24 * time.Hour
	keepGoneOthers  = time.Hour
	// keepClosed applies to the closed batches of an ended job. By then agents no longer repeat reports.
	keepClosed = time.Hour
	// closedAtOnce bounds the closed batches removed by one write.
	closedAtOnce = 2000
)

// keptUntil returns when a gone agent is forgotten.
func (m *Machine) keptUntil(a *agent) time.Time {
	keep := keepGoneOthers
	if a.spec.GetKind() == tilthv1.AgentKind_AGENT_KIND_RUNNER {
		keep = keepGoneDevices
	}
	return m.cfg.Clock().Add(keep - m.cfg.Now().Sub(a.seen))
}

// forgetAgent forgets an agent whose retention has ended. Entries queued for its session, or for a predecessor of a
// rejoined agent, are ignored.
func (c *Change) forgetAgent(a *agent, now time.Time) {
	if !now.After(a.deadline) || c.agents[a.name()] != a {
		return
	}
	c.forget(a)
}

// forget removes a gone agent, and its device unless that is cordoned or quarantined.
func (c *Change) forget(a *agent) {
	c.forgetName(a.name())
	c.write.DropAgent(a.name())
	if d := a.device; d != nil && d.cordon == nil && d.quarantine == nil {
		delete(c.devices, d.name)
		c.write.DropDevice(d.name)
	}
}

// forgetName removes the agent with that name from memory.
func (m *Machine) forgetName(name string) {
	a := m.agents[name]
	if a == nil {
		return
	}
	delete(m.agents, name)
	m.load.agentBytes -= a.specBytes
	if a.goneAt != nil {
		m.gone.Remove(a.goneAt)
	}
}

// forgetOldest evicts the agents that have been gone longest. Agents choose their names freely, so their number must
// be bounded.
func (c *Change) forgetOldest() {
	for c.gone.Len() > c.cfg.Limits.Gone {
		c.forget(c.gone.Front().Value.(*agent))
	}
}

// closedRange is the half-open range of closed batch ids from first to beyond.
type closedRange struct{ first, beyond string }

// keepClosed schedules the removal of the closed batches of an ended job.
func (m *Machine) keepClosed(jobID string, proposals uint64) {
	at := m.cfg.Clock().Add(keepClosed)
	for n := uint64(0); n < proposals; n += closedAtOnce {
		m.deadlines.closed(closedRange{batchID(jobID, n), batchID(jobID, n+closedAtOnce)}, at)
	}
}

// recoverClosed does the same for jobs that ended before the tracker started.
func (m *Machine) recoverClosed(rows Rows) error {
	ids, proposals, err := rows.ClosedJobs()
	for i, id := range ids {
		if m.jobs[id] == nil {
			m.keepClosed(id, proposals[i])
		}
	}
	return err
}
