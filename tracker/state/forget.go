package state

import (
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

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
