package state

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// Change is one step of the machine: what an operation does to the memory, and the same for the store.
type Change struct {
	*Machine
	effects *Effects
	write   *records.Write
	at      *timestamppb.Timestamp
	// Jobs whose rows changed, with their new events, and batches whose rows did.
	touched map[*job][]*tilthv1.JobEvent
	moved   map[*batch]struct{}
	// Owners of whose ended jobs the oldest may have to go.
	retains []string
	// Classes whose queues grew.
	dirty map[class]struct{}
}

// Apply makes one change: step checks everything before it changes anything, and an error of it changes nothing. Work
// that the change freed is then leased to agents that wait for some, in changes of their own. Effects has them all,
// this one's, which is returned as well, before theirs.
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

// now is when the change is made: one time for all of it, which nobody changes.
func (c *Change) now() *timestamppb.Timestamp {
	if c.at == nil {
		c.at = timestamppb.New(c.cfg.Now())
	}
	return c.at
}

// event gives an event the next number of its job. Whoever fills it in has it stored; watchers are told once it is.
func (c *Change) event(j *job) *tilthv1.JobEvent {
	j.lastSequence++
	e := &tilthv1.JobEvent{Sequence: j.lastSequence, At: c.now()}
	c.touched[j] = append(c.touched[j], e)
	return e
}

// touch has the job's row stored with the change.
func (c *Change) touch(j *job) {
	if _, already := c.touched[j]; !already {
		c.touched[j] = nil
	}
}

// move has the batch's row stored with the change.
func (c *Change) move(b *batch) { c.moved[b] = struct{}{} }

// Confirm has the change made only while this tracker has the store, even if it turns out to be none.
func (c *Change) Confirm() { c.write.Confirm() }

// Repeated notes that a call had taken effect before and changes nothing.
func (c *Change) Repeated(call string) { c.tell(Repeated{call}) }
