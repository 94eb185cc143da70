// This file implements a fair queue. It shares servers among owners in proportion to their weights, and an owner's
// part among its jobs in proportion to theirs, regardless of demand. It has no clock: callers report the time that
// servers spent.
//
// It implements weighted fair queueing (Demers, Keshav and Shenker, SIGCOMM 1989) on two levels with multiple servers.
// A flow's tag is the virtual start time of its next item; each item served advances it by cost/weight. The flow whose
// next item would end first is served next: of flows that are even, the heaviest. Virtual time is the least tag among
// those that wait, as in WF2Q+ (Bennett and Zhang, IEEE/ACM Transactions on Networking 1997). A flow that starts to
// wait starts at virtual time, so idling earns no credit. Costs are estimated when an item is taken and corrected when
// it is done.
//
// Between two flows that wait throughout an interval, the seconds served per unit of weight differ by at most the sum
// of their longest items over their weights, times the number of servers.

package policy

import (
	"slices"
)

// Flow identifies the owner and job of an item.
type Flow struct {
	Owner string
	// Job is unique among the owner's jobs.
	Job string
	// OwnerWeight and JobWeight are the shares among owners and among the owner's jobs. Values that are not positive
	// mean 1. A change takes effect with the next item.
	OwnerWeight, JobWeight float64
}

// Queue holds items until they are taken. Operations take time logarithmic in the number of flows, and results depend
// only on the order of calls. A Queue is not safe for concurrent use.
type Queue[T any] struct {
	owners *level[*owner[T]]
	byName map[string]*node[*owner[T]]
	// maxItem caps the seconds that an item counts when the next ones are ordered.
	maxItem float64
	jobs    int
	length  int
	// served counts the taken items whose charges have not ended.
	served int
	// sweepAt is the number of owners that triggers a sweep of idle ones.
	sweepAt int
}

// owner is the state of an owner's flow.
type owner[T any] struct {
	name   string
	jobs   *level[[]T]
	byName map[string]*node[[]T]
	length int
	served int
}

const minSweep = 16

// NewQueue returns an empty queue of items that take maxItem seconds at most while others wait.
func NewQueue[T any](maxItem float64) *Queue[T] {
	return &Queue[T]{owners: newLevel[*owner[T]](maxItem), maxItem: maxItem, byName: map[string]*node[*owner[T]]{}, sweepAt: minSweep}
}

// Len returns the number of waiting items.
func (q *Queue[T]) Len() int { return q.length }

// EachWaiting calls visit for every owner with waiting items.
func (q *Queue[T]) EachWaiting(visit func(owner string, items int)) {
	for _, n := range q.owners.next.All {
		visit(n.value.name, n.value.length)
	}
}

// Owners returns the number of remembered owners.
func (q *Queue[T]) Owners() int { return len(q.byName) }

// Jobs returns the number of jobs that were used and not forgotten.
func (q *Queue[T]) Jobs() int { return q.jobs }

// Push adds an item behind the other items of its job, or in front.
func (q *Queue[T]) Push(f Flow, item T, front bool) {
	if q.length == 0 && q.served == 0 {
		q.owners.forgive()
	}
	n := q.enter(f)
	n.value.push(n.value.byName[f.Job], item, front)
	q.owners.begin(n)
	q.length++
}

// enter registers a flow and updates its weights.
func (q *Queue[T]) enter(f Flow) *node[*owner[T]] {
	n := q.owner(f.Owner)
	q.owners.setWeight(n, f.OwnerWeight)
	job := n.value.byName[f.Job]
	if job == nil {
		job = n.value.jobs.newFlow(nil, f.JobWeight)
		n.value.byName[f.Job] = job
		q.jobs++
	}
	n.value.jobs.setWeight(job, f.JobWeight)
	return n
}

func (o *owner[T]) push(job *node[[]T], item T, front bool) {
	if o.length == 0 && o.served == 0 {
		o.jobs.forgive()
	}
	if front {
		job.value = slices.Insert(job.value, 0, item)
	} else {
		job.value = append(job.value, item)
	}
	o.jobs.begin(job)
	o.length++
}

// Filter decides what may be taken. Nil functions allow everything.
type Filter[T any] struct {
	Owner func(owner string) bool
	Item  func(item T) bool
}

// Pop takes the next allowed item and begins its charge; ok is false if no item is allowed. Skipped items cost time
// each. An item that is not allowed keeps its place, while an owner that is not allowed counts as not waiting.
func (q *Queue[T]) Pop(allowed Filter[T]) (item T, charge *Charge, ok bool) {
	var skipped, barred []*node[*owner[T]]
	var n *node[*owner[T]]
	var job *node[[]T]
	for !ok && len(q.owners.next.All) > 0 {
		n = q.owners.next.All[0]
		if allowed.Owner != nil && !allowed.Owner(n.value.name) {
			q.owners.end(n)
			barred = append(barred, n)
		} else if item, job, ok = n.value.pop(allowed.Item); !ok {
			q.owners.end(n)
			skipped = append(skipped, n)
		}
	}
	for _, n := range skipped {
		q.owners.resume(n)
	}
	if ok {
		q.owners.serve()
		q.length--
		q.served++
		if n.value.length == 0 {
			q.owners.end(n)
		}
		charge = q.charge(n, job)
	}
	for _, n := range barred {
		q.owners.begin(n)
	}
	return item, charge, ok
}

func (q *Queue[T]) charge(n *node[*owner[T]], job *node[[]T]) *Charge {
	o := n.value
	return &Charge{
		pay: func(seconds float64) {
			q.owners.charge(n, seconds)
			o.jobs.charge(job, seconds)
		},
		end: func(total float64) {
			q.served--
			o.served--
			q.owners.learn(total)
			o.jobs.learn(total)
		},
	}
}

func (o *owner[T]) pop(allowed func(T) bool) (item T, job *node[[]T], ok bool) {
	var skipped []*node[[]T]
	i := -1
	for i < 0 && len(o.jobs.next.All) > 0 {
		if job, i = o.jobs.next.All[0], 0; allowed != nil {
			i = slices.IndexFunc(job.value, allowed)
		}
		if i < 0 {
			o.jobs.end(job)
			skipped = append(skipped, job)
		}
	}
	for _, n := range skipped {
		o.jobs.resume(n)
	}
	if i < 0 {
		return item, nil, false
	}
	item = job.value[i]
	o.take(job, i)
	return item, job, true
}

// take removes an item from its job.
func (o *owner[T]) take(n *node[[]T], i int) {
	o.jobs.serve()
	o.length--
	o.served++
	if i == 0 {
		var none T
		n.value[0], n.value = none, n.value[1:]
	} else {
		n.value = slices.Delete(n.value, i, i+1)
	}
	if len(n.value) == 0 {
		n.value = nil
		o.jobs.end(n)
	}
}

// Charge is what the flows of a taken item pay for it. It must be used under the same synchronization as its queue.
type Charge struct {
	pay   func(seconds float64)
	end   func(total float64)
	paid  float64
	ended bool
}

// Set sets the total charge in seconds: first an estimate, later the actual cost.
func (c *Charge) Set(seconds float64) {
	if c.ended || !(seconds >= 0) {
		return
	}
	c.pay(seconds - c.paid)
	c.paid = seconds
}

// Paid returns the charge so far in seconds.
func (c *Charge) Paid() float64 { return c.paid }

// End marks the item as done at its last charge. Repeating the call changes nothing.
func (c *Charge) End() {
	if !c.ended {
		c.ended = true
		c.end(c.paid)
	}
}

// Remove drops the waiting items of a job and returns them in the order in which they would have been taken. The job
// keeps its charges.
func (q *Queue[T]) Remove(owner, job string) []T {
	n := q.byName[owner]
	if n == nil || n.value.byName[job] == nil {
		return nil
	}
	o, j := n.value, n.value.byName[job]
	items := j.value
	j.value = nil
	o.jobs.end(j)
	o.length -= len(items)
	q.length -= len(items)
	if o.length == 0 {
		q.owners.end(n)
	}
	return items
}

// Forget removes an ended job. Charges of its unfinished items stay with the owner.
func (q *Queue[T]) Forget(owner, job string) {
	q.Remove(owner, job)
	if n := q.byName[owner]; n != nil && n.value.byName[job] != nil {
		n.value.jobs.forget(n.value.byName[job])
		delete(n.value.byName, job)
		q.jobs--
	}
}

// owner returns an owner's flow. Owners outlive their last job, since otherwise a new job would start even. They are
// removed once the other owners have caught up.
func (q *Queue[T]) owner(name string) *node[*owner[T]] {
	if n := q.byName[name]; n != nil {
		return n
	}
	if len(q.byName) >= q.sweepAt {
		q.sweep()
	}
	n := q.owners.newFlow(&owner[T]{name: name, jobs: newLevel[[]T](q.maxItem), byName: map[string]*node[[]T]{}}, 1)
	q.byName[name] = n
	return n
}

func (q *Queue[T]) sweep() {
	for name, n := range q.byName {
		if len(n.value.byName) == 0 && n.value.served == 0 && n.tag <= q.owners.virtual {
			delete(q.byName, name)
		}
	}
	q.sweepAt = max(minSweep, 2*len(q.byName))
}

// Order returns the waiting items in the order in which they will be taken if nothing is added and each is of
// typical length. It takes time log-linear in their number.
func (q *Queue[T]) Order() []T {
	c := &Queue[T]{length: q.length, owners: q.owners.clone(func(o *owner[T]) *owner[T] {
		return &owner[T]{name: o.name, length: o.length, jobs: o.jobs.clone(slices.Clone[[]T])}
	})}
	out := make([]T, 0, q.length)
	for {
		item, charge, ok := c.Pop(Filter[T]{})
		if !ok {
			return out
		}
		charge.Set(q.owners.item)
		out = append(out, item)
	}
}

// clone returns a copy of a level with copies of the flows that wait.
func (l *level[V]) clone(value func(V) V) *level[V] {
	c := newLevel[V](l.maxItem)
	c.virtual, c.item, c.average, c.begun = l.virtual, l.item, l.average, l.begun
	for _, n := range l.next.All {
		c.resume(&node[V]{value: value(n.value), weight: n.weight, tag: n.tag, order: n.order})
	}
	return c
}

// Ahead reports whether a waiting item would be taken before the next item of a flow that began to wait now.
func (q *Queue[T]) Ahead(f Flow) bool {
	if len(q.owners.next.All) == 0 {
		return false
	}
	first, own := q.owners.next.All[0], q.byName[f.Owner]
	if own != first {
		return !q.owners.before(own, f.OwnerWeight, first)
	}
	jobs := first.value.jobs
	return !jobs.before(own.value.byName[f.Job], f.JobWeight, jobs.next.All[0])
}

// before reports whether a flow that began to wait now would be served before one that waits. A nil n is a flow that
// was never served.
func (l *level[V]) before(n *node[V], weight float64, waiting *node[V]) bool {
	next := l.newFlow(*new(V), weight)
	if n != nil {
		next.tag = n.tag
	}
	next.tag = max(next.tag, l.virtual)
	return l.finish(next) < l.finish(waiting)
}

// Begin begins the charge of an item that was taken before the queue existed.
func (q *Queue[T]) Begin(f Flow) *Charge {
	n := q.enter(f)
	job := n.value.byName[f.Job]
	q.served++
	n.value.served++
	return q.charge(n, job)
}

// Heap implements heap.Interface for elements that know their places, so that they can be removed.
type Heap[T any] struct {
	All   []T
	less  func(a, b T) bool
	place func(T) *int
}

// NewHeap returns an empty heap. place points to where an element keeps its place, which is -1 outside the heap.
func NewHeap[T any](less func(a, b T) bool, place func(T) *int) Heap[T] {
	return Heap[T]{less: less, place: place}
}

func (h *Heap[T]) Len() int { return len(h.All) }

func (h *Heap[T]) Less(i, j int) bool { return h.less(h.All[i], h.All[j]) }

func (h *Heap[T]) Swap(i, j int) {
	h.All[i], h.All[j] = h.All[j], h.All[i]
	*h.place(h.All[i]), *h.place(h.All[j]) = i, j
}

// Push implements heap.Interface.
func (h *Heap[T]) Push(x any) {
	h.All = append(h.All, x.(T))
	*h.place(x.(T)) = len(h.All) - 1
}

// Pop implements heap.Interface.
func (h *Heap[T]) Pop() any {
	var none T
	last := len(h.All) - 1
	x := h.All[last]
	h.All[last], h.All = none, h.All[:last]
	*h.place(x) = -1
	return x
}
