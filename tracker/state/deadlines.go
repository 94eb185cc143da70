package state

import (
	"container/heap"
	"time"
)

// deadlines is a heap of the sessions, leases and closed batches that are due for a check. An extended deadline is
// noticed only when the old one passes, so a heartbeat does not touch the heap. A lease that ends is removed at once:
// otherwise its entry would retain the batch until it was due.
type deadlines []deadline

// deadline is the due time of an agent, a lease or a range of closed batches; exactly one of them is set.
type deadline struct {
	at     time.Time
	agent  *agent
	lease  *lease
	closed *closedRange
}

// agent schedules a check of an agent.
func (d *deadlines) agent(a *agent) { heap.Push(d, deadline{at: a.deadline, agent: a}) }

// lease schedules a check of a lease.
func (d *deadlines) lease(l *lease) { heap.Push(d, deadline{at: l.deadline, lease: l}) }

// drop removes a lease that has ended.
func (d *deadlines) drop(l *lease) {
	if l.place < len(*d) && (*d)[l.place].lease == l {
		heap.Remove(d, l.place)
	}
}

// closed schedules the removal of a range of closed batches.
func (d *deadlines) closed(r closedRange, at time.Time) { heap.Push(d, deadline{at: at, closed: &r}) }

// next removes and returns an entry due before now; ok is false if the heap has no such entry.
func (d *deadlines) next(now time.Time) (due deadline, ok bool) {
	if len(*d) == 0 || !now.After((*d)[0].at) {
		return deadline{}, false
	}
	return heap.Pop(d).(deadline), true
}

// Len implements heap.Interface.
func (d deadlines) Len() int { return len(d) }

// Less implements heap.Interface.
func (d deadlines) Less(i, j int) bool { return d[i].at.Before(d[j].at) }

// Swap implements heap.Interface.
func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d.setIndex(i)
	d.setIndex(j)
}

// setIndex updates the index of the lease at i.
func (d deadlines) setIndex(i int) {
	if l := d[i].lease; l != nil {
		l.place = i
	}
}

// Push implements heap.Interface.
func (d *deadlines) Push(x any) {
	*d = append(*d, x.(deadline))
	d.setIndex(len(*d) - 1)
}

// Pop implements heap.Interface.
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	(*d)[last] = deadline{}
	*d = (*d)[:last]
	return x
}
