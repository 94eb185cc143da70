package policy

import "slices"

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
