package state

import (
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// What is of use for a while only is kept so long, in memory and in the store.
const (
	// keepGoneDevices is for devices: their names are those of boards, which somebody may miss. Builders and tuners
	// come and go under new names.
	keepGoneDevices = 7 * 24 * time.Hour
	keepGoneOthers  = time.Hour
	// keepClosed is for the closed batches of a job that has ended: by then no agent repeats a report any more.
	keepClosed = time.Hour
	// closedAtOnce bounds how many of them are removed by one write.
	closedAtOnce = 2000
)

// keptUntil is when an agent that is gone is forgotten.
func (m *Machine) keptUntil(a *agent) time.Time {
	keep := keepGoneOthers
	if a.spec.GetKind() == tilthv1.AgentKind_AGENT_KIND_RUNNER {
		keep = keepGoneDevices
	}
	return m.cfg.Clock().Add(keep - m.cfg.Now().Sub(a.seen))
}

// forgetAgent forgets an agent whose time has come. What was noted for its session comes before that, and what was
// noted for an agent that has joined anew since is void.
func (c *Change) forgetAgent(a *agent, now time.Time) {
	if !now.After(a.deadline) || c.agents[a.name()] != a {
		return
	}
	c.forget(a)
}

// forget forgets an agent that is gone, and what is known of its device unless somebody decided something of it.
func (c *Change) forget(a *agent) {
	c.forgetName(a.name())
	c.write.DropAgent(a.name())
	if d := a.device; d != nil && d.cordon == nil && d.quarantine == nil {
		delete(c.devices, d.name)
		c.write.DropDevice(d.name)
	}
}

// forgetName takes the agent of a name, if there is one, out of those that are known.
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

// forgetOldest makes room for an agent: names are anybody's to invent, so those that left first are forgotten before
// their time.
func (c *Change) forgetOldest() {
	for c.gone.Len() > c.cfg.Limits.Gone {
		c.forget(c.gone.Front().Value.(*agent))
	}
}

// closedRange are the closed batches from an id on to before another.
type closedRange struct{ first, beyond string }

// keepClosed keeps the closed batches of a job that has ended, of so many proposed, for a while.
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
