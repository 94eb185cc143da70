package state

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// outage is a period in which most agents are silent.
type outage struct {
	// By Clock: how long to wait for them.
	until time.Time
	// By the wall clock.
	shownSince, shownUntil time.Time
	silent, agents         int
}

// An outage needs at least minSilent silent agents, and more than half of all. With two agents, two dead ones look
// like a broken network, and little is lost either way.
const minSilent = 3

// verdict decides what happens to overdue agents.
type verdict int

const (
	// They are removed as usual.
	outageNone verdict = iota
	// The tracker waits for them.
	outageWait
	// They did not return in time. Their work is requeued without blame.
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
