package state

import (
	"container/heap"
	"time"
)

// deadlines tell which sessions and leases are due to be looked at, and what is to be forgotten, without a look at all
// of them. A deadline that was put off is found out when the earlier one has come, so that a heartbeat costs nothing
// here. A lease that ends is taken out: kept until it is due, each would hold its batch for as long.
type deadlines []deadline

// deadline is when an agent, a lease or a range of closed batches is due; the others are nil.
type deadline struct {
	at     time.Time
	agent  *agent
	lease  *lease
	closed *closedRange
}

// agent has an agent looked at when it is due.
func (d *deadlines) agent(a *agent) { heap.Push(d, deadline{at: a.deadline, agent: a}) }

// lease has a lease looked at when it is due.
func (d *deadlines) lease(l *lease) { heap.Push(d, deadline{at: l.deadline, lease: l}) }

// drop takes out a lease that has ended.
func (d *deadlines) drop(l *lease) {
	if l.place < len(*d) && (*d)[l.place].lease == l {
		heap.Remove(d, l.place)
	}
}

// closed has a range of closed batches forgotten.
func (d *deadlines) closed(r closedRange, at time.Time) { heap.Push(d, deadline{at: at, closed: &r}) }

// next takes what was due before now; ok is false when there is nothing.
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
	d.tell(i)
	d.tell(j)
}

// tell lets what is at place i know where it is.
func (d deadlines) tell(i int) {
	if l := d[i].lease; l != nil {
		l.place = i
	}
}

// Push implements heap.Interface.
func (d *deadlines) Push(x any) {
	*d = append(*d, x.(deadline))
	d.tell(len(*d) - 1)
}

// Pop implements heap.Interface.
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	(*d)[last] = deadline{}
	*d = (*d)[:last]
	return x
}
