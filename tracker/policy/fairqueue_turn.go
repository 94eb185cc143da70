package policy

// Ahead reports whether a waiting item would be taken before the next item of a flow that began to wait now.
func (q *Queue[T]) Ahead(f Flow) bool {
	if len(q.owners.waiting) == 0 {
		return false
	}
	first, own := q.owners.waiting[0], q.byName[f.Owner]
	if own != first {
		return !q.owners.before(own, first)
	}
	return !first.value.jobs.before(own.value.byName[f.Job], first.value.jobs.waiting[0])
}

// before reports whether a flow that began to wait now would be served before one that waits. A nil n is a flow that
// was never served.
func (l *level[V]) before(n, waiting *node[V]) bool {
	tag := l.virtual
	if n != nil {
		tag = max(n.tag, tag)
	}
	return tag < waiting.tag
}

// Begin begins the charge of an item that was taken before the queue existed.
func (q *Queue[T]) Begin(f Flow) *Charge {
	n := q.enter(f)
	job := n.value.byName[f.Job]
	q.served++
	n.value.served++
	return q.charge(n, job)
}
