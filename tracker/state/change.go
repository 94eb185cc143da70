package state

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Change is one transition of the machine. It applies an operation to memory and collects the matching writes.
type Change struct {
	*Machine
	effects *Effects
	write   *records.Write
	at      *timestamppb.Timestamp
	// touched holds the jobs whose rows changed, with their new events, moved the batches whose rows changed.
	touched map[*job][]*tilthv1.JobEvent
	moved   map[*batch]struct{}
	// retains lists the owners whose retention limits must be enforced.
	retains []string
	// dirty holds the classes whose queues have grown.
	dirty map[class]struct{}
}

// Apply makes one change. The step must check everything before it modifies anything: if it returns an error, nothing
// has changed. Work that the change made available is then leased to waiting agents, in changes of their own. Effects
// returns them all in order, beginning with the returned one.
func (m *Machine) Apply(step func(c *Change) error) (*Effects, error) {
	c := &Change{
		Machine: m, effects: &Effects{Write: &records.Write{}, Events: map[string][]*tilthv1.JobEvent{}},
		touched: map[*job][]*tilthv1.JobEvent{}, moved: map[*batch]struct{}{}, dirty: map[class]struct{}{},
	}
	c.write = c.effects.Write
	if err := step(c); err != nil {
		return nil, err
	}
	for j, events := range c.touched {
		c.write.PutJob(j.row())
		j.stored = j.spent
		if len(events) > 0 {
			c.effects.Events[j.id] = events
		}
	}
	for b := range c.moved {
		c.write.PutBatch(b.id, b.row())
	}
	for _, owner := range c.retains {
		c.retain(owner)
	}
	m.effects = append(m.effects, c.effects)
	for _, class := range slices.SortedFunc(maps.Keys(c.dirty), class.compare) {
		m.dispatch(class)
	}
	return c.effects, nil
}

// now returns the time of the change, the same for all of it. The result is shared and must not be modified.
func (c *Change) now() *timestamppb.Timestamp {
	if c.at == nil {
		c.at = timestamppb.New(c.cfg.Now())
	}
	return c.at
}

// event makes e the job's next event. The caller must store it; watchers see it once it is stored.
func (c *Change) event(j *job, e *tilthv1.JobEvent) *tilthv1.JobEvent {
	j.lastSequence++
	e.Sequence, e.At = j.lastSequence, c.now()
	c.touched[j] = append(c.touched[j], e)
	return e
}

// touch stores the job's row with the change.
func (c *Change) touch(j *job) {
	if _, already := c.touched[j]; !already {
		c.touched[j] = nil
	}
}

// move stores the batch's row with the change.
func (c *Change) move(b *batch) { c.moved[b] = struct{}{} }

// Confirm makes the change conditional on this tracker owning the store, even if the change writes nothing.
func (c *Change) Confirm() { c.write.Confirms = true }

// Repeated records that a call was a duplicate and changed nothing.
func (c *Change) Repeated(call string) { c.addFact(Repeated{call}) }

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
