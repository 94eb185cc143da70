package policy

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
	n := newNode(&owner[T]{name: name, byName: map[string]*node[[]T]{}})
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
