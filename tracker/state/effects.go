package state

import (
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Effects are what a change asks of the world outside of the machine. They are carried out in the order in which the
// machine gave them; nobody is told of the change before its write is on disk.
type Effects struct {
	// Write is what is to be stored.
	Write *records.Write
	// Events are those that watchers are to be told of once they are stored, by job.
	Events map[string][]*tilthv1.JobEvent
	// Dropped says that rows of dropped jobs are left to be swept once the write is on disk.
	Dropped bool
	// Facts are what happened, for who counts it.
	Facts []Fact
	// Void are the requests for work that nobody will answer: their agents' sessions are void.
	Void []*Waiter
	// Grant is the lease that the change is; nil of other changes.
	Grant *Grant
}

// Grant is work that was leased to an agent.
type Grant struct {
	// To is the request for work that waited for it; nil when the agent got it at once.
	To       *Waiter
	Response *tilthv1.LeaseWorkResponse
}

// Effects returns those of all changes since it was asked last, in their order.
func (m *Machine) Effects() []*Effects {
	all := m.effects
	m.effects = nil
	return all
}

// tell adds a fact to a change's effects.
func (c *Change) tell(f Fact) { c.effects.Facts = append(c.effects.Facts, f) }
