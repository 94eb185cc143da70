package state

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// outage is a time in which most agents are silent.
type outage struct {
	// By Clock: until when it waits for them.
	until time.Time
	// On the wall.
	shownSince, shownUntil time.Time
	silent, agents         int
}

// An outage is when more than half of the agents fall silent, and more than two: a farm of two agents cannot tell the
// death of both from a broken network, and loses little by either.
const leastSilent = 3

// verdict is what is to become of agents that were silent for too long.
type verdict int

const (
	// They are gone, as agents go.
	outageNone verdict = iota
	// They are waited for.
	outageWait
	// They did not come back in time; what they held goes to others, and nobody is blamed.
	outageOver
)

// judgeOutage says what silence means now. When most agents vanish at once it is the network that failed, or the
// tracker's own machine, and giving all their work up would be the greater damage.
func (c *Change) judgeOutage(now time.Time, overdue bool) verdict {
	if !overdue && c.outage == nil {
		return outageNone
	}
	silent := c.silent(now)
	most := silent >= leastSilent && 2*silent > len(c.sessions)
	switch o := c.outage; {
	case !most && o == nil:
		return outageNone
	case !most:
		c.log.Info("most agents are back", "silent", silent, "agents", len(c.sessions))
		c.Machine.outage = nil
		return outageNone
	case o == nil:
		wall := c.cfg.Now()
		c.Machine.outage = &outage{
			until: now.Add(c.cfg.OutageWait), shownSince: wall, shownUntil: wall.Add(c.cfg.OutageWait),
			silent: silent, agents: len(c.sessions),
		}
		c.tell(OutageBegan)
		c.log.Error("most agents fell silent at once: waiting for them", "silent", silent, "agents", len(c.sessions),
			"wait_seconds", c.cfg.OutageWait.Seconds())
		return outageWait
	case now.Before(o.until):
		o.silent, o.agents = silent, len(c.sessions)
		return outageWait
	}
	c.log.Error("most agents did not come back: their work is given to others", "silent", silent, "agents", len(c.sessions))
	c.Machine.outage = nil
	return outageOver
}

// silent counts the agents that have missed several heartbeats. They are fewer than half a timeout late when the first
// of them is a whole one, if they fell silent together.
func (m *Machine) silent(now time.Time) (n int) {
	for _, a := range m.sessions {
		if now.Sub(a.heard) > m.cfg.LeaseTimeout/2 {
			n++
		}
	}
	return n
}

// Outage is the outage as clients see it; nil when there is none.
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
