package state

import (
	"container/heap"
	"time"

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
