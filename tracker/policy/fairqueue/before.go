package fairqueue

import (
	"cmp"
	"slices"
)

// Waiting is how much of an owner's waits.
type Waiting struct {
	Owner string
	Items int
}

// Before says what waits that would be taken before the items of a flow: of other owners, those of the most items
// first, and of the flow's owner. It takes time linear in the number of owners and of the owner's jobs.
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

// sooner says which of two flows that wait is served first.
func sooner[V any](a, b *node[V]) bool {
	if a.tag != b.tag {
		return a.tag < b.tag
	}
	return a.order < b.order
}
