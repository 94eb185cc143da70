package policy

import (
	"cmp"
	"slices"
)

// Waiting is the number of items that an owner has waiting.
type Waiting struct {
	Owner string
	Items int
}

// Before returns what would be taken before the items of a flow: items of other owners, largest number first, and
// items of the same owner. It takes time linear in the owners and the owner's jobs.
func (q *Queue[T]) Before(f Flow) (others []Waiting, own int) {
	n := q.byName[f.Owner]
	if n == nil || n.place < 0 {
		return nil, 0
	}
	for _, other := range q.owners.waiting {
		if other != n && sooner(other, n) {
			others = append(others, Waiting{other.value.name, other.value.length})
		}
	}
	slices.SortFunc(others, func(a, b Waiting) int { return cmp.Or(cmp.Compare(b.Items, a.Items), cmp.Compare(a.Owner, b.Owner)) })
	if job := n.value.byName[f.Job]; job != nil && job.place >= 0 {
		for _, other := range n.value.jobs.waiting {
			if other != job && sooner(other, job) {
				own += len(other.value)
			}
		}
	}
	return others, own
}

// sooner reports whether waiting flow a is served before b.
func sooner[V any](a, b *node[V]) bool {
	if a.tag != b.tag {
		return a.tag < b.tag
	}
	return a.order < b.order
}

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
