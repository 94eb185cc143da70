package tracker

import (
	"container/heap"
	"time"
)

// deadlines tell which sessions and leases are due to be looked at, and what is to be forgotten, without a look at all of them. A deadline that was put off is found
// out when the earlier one has come, so that a heartbeat costs nothing here.
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
func (d deadlines) Swap(i, j int) { d[i], d[j] = d[j], d[i] }

// Push implements heap.Interface.
func (d *deadlines) Push(x any) { *d = append(*d, x.(deadline)) }

// Pop implements heap.Interface.
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	(*d)[last] = deadline{}
	*d = (*d)[:last]
	return x
}
