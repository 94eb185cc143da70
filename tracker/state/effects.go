package state

import (
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Effects are the external actions that a change requires. They must be carried out in the order in which the machine
// returned them, and nothing may be published before its write is on disk.
type Effects struct {
	// Write holds the rows to store.
	Write *records.Write
	// Events are the events to publish once they are stored, by job.
	Events map[string][]*tilthv1.JobEvent
	// Dropped is set if rows of dropped jobs must be swept after the write.
	Dropped bool
	// Facts are events for metrics.
	Facts []Fact
	// Void lists pending requests that will get no answer, since their sessions are void.
	Void []*Waiter
	// Grant is the lease that the change granted, if any.
	Grant *Grant
}

// Grant is work leased to an agent.
type Grant struct {
	// To is the pending request that the grant answers; nil if the agent got it at once.
	To       *Waiter
	Response *tilthv1.LeaseWorkResponse
}

// Effects returns and clears the effects of all changes since the last call, in order.
func (m *Machine) Effects() []*Effects {
	all := m.effects
	m.effects = nil
	return all
}

// addFact adds a fact to the change's effects.
func (c *Change) addFact(f Fact) { c.effects.Facts = append(c.effects.Facts, f) }
