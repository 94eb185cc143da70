// This file implements a fair queue. It shares servers among owners in proportion to their weights, and an owner's
// part among its jobs in proportion to theirs, regardless of demand. It has no clock: callers report the time that
// servers spent.
//
// It implements start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996) on two levels with multiple servers (as
// in SFQ(D) by Jin, Chase and Kaur, SIGMETRICS 2004). A flow's tag is the virtual start time of its next item; each
// item served advances it by cost/weight. The flow with the smallest tag is served next, and virtual time is the tag
// of the item served last. A flow that starts to wait starts at virtual time, so idling earns no credit. Costs are
// estimated when an item is taken and corrected when it is done.
//
// Between two flows that wait throughout an interval, the seconds served per unit of weight differ by at most the sum
// of their longest items over their weights, times the number of servers.

package policy

import "slices"

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
	owners level[*owner[T]]
	byName map[string]*node[*owner[T]]
	jobs   int
	length int
	// Taken items whose charges have not ended.
	served int
	// The number of owners that triggers a sweep of idle ones.
	sweepAt int
}

// owner is the state of an owner's flow.
type owner[T any] struct {
	name   string
	jobs   level[[]T]
	byName map[string]*node[[]T]
	length int
	served int
}

const minSweep = 16

// NewQueue returns an empty queue.
func NewQueue[T any]() *Queue[T] {
	return &Queue[T]{byName: map[string]*node[*owner[T]]{}, sweepAt: minSweep}
}

// Len returns the number of waiting items.
func (q *Queue[T]) Len() int { return q.length }

// EachWaiting calls visit for every owner with waiting items.
func (q *Queue[T]) EachWaiting(visit func(owner string, items int)) {
	for _, n := range q.owners.waiting {
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
	n.setWeight(f.OwnerWeight)
	job := n.value.byName[f.Job]
	if job == nil {
		job = newNode[[]T](nil)
		n.value.byName[f.Job] = job
		q.jobs++
	}
	job.setWeight(f.JobWeight)
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
	var passed, barred []*node[*owner[T]]
	for !ok && len(q.owners.waiting) > 0 {
		n := q.owners.waiting[0]
		if allowed.Owner != nil && !allowed.Owner(n.value.name) {
			q.owners.end(n)
			barred = append(barred, n)
			continue
		}
		if item, charge, ok = q.popFrom(n, allowed.Item); !ok {
			q.owners.end(n)
			passed = append(passed, n)
		}
	}
	for _, n := range passed {
		q.owners.resume(n)
	}
	for _, n := range barred {
		q.owners.begin(n)
	}
	return item, charge, ok
}

func (q *Queue[T]) popFrom(n *node[*owner[T]], allowed func(T) bool) (item T, charge *Charge, ok bool) {
	o := n.value
	item, job, ok := o.pop(allowed)
	if !ok {
		return item, nil, false
	}
	q.owners.serve(n)
	q.length--
	q.served++
	if o.length == 0 {
		q.owners.end(n)
	}
	return item, q.charge(n, job), true
}

func (q *Queue[T]) charge(n *node[*owner[T]], job *node[[]T]) *Charge {
	o := n.value
	return &Charge{
		pay: func(seconds float64) {
			q.owners.charge(n, seconds)
			o.jobs.charge(job, seconds)
		},
		end: func() { q.served--; o.served-- },
	}
}

func (o *owner[T]) pop(allowed func(T) bool) (item T, job *node[[]T], ok bool) {
	var passed []*node[[]T]
	for !ok && len(o.jobs.waiting) > 0 {
		n := o.jobs.waiting[0]
		i := 0
		if allowed != nil {
			i = slices.IndexFunc(n.value, allowed)
		}
		if i < 0 {
			o.jobs.end(n)
			passed = append(passed, n)
			continue
		}
		item, job, ok = n.value[i], n, true
		o.take(n, i)
	}
	for _, n := range passed {
		o.jobs.resume(n)
	}
	return item, job, ok
}

// take removes an item from its job.
func (o *owner[T]) take(n *node[[]T], i int) {
	o.jobs.serve(n)
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
