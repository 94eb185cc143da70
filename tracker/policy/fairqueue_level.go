package policy

import "container/heap"

// level is start-time fair queueing among the flows of one level.
type level[V any] struct {
	waiting heapOf[V]
	// The tag of the item served last. It never decreases.
	virtual float64
	// The highest tag so far.
	highest float64
	begun   uint64
}

// node is a flow.
type node[V any] struct {
	value  V
	weight float64
	// Virtual start time of the flow's next item.
	tag float64
	// Breaks ties between equal tags: the flow that began to wait first wins.
	order uint64
	place int // in the heap; -1 while the flow does not wait
}

func newNode[V any](value V) *node[V] { return &node[V]{value: value, weight: 1, place: -1} }

func (n *node[V]) setWeight(w float64) {
	if !(w > 0) {
		w = 1
	}
	n.weight = w
}

// begin makes a flow wait, unless it already does.
func (l *level[V]) begin(n *node[V]) {
	if n.place >= 0 {
		return
	}
	n.tag = max(n.tag, l.virtual)
	l.begun++
	n.order = l.begun
	heap.Push(&l.waiting, n)
}

// resume makes a flow wait again with its old tag.
func (l *level[V]) resume(n *node[V]) { heap.Push(&l.waiting, n) }

// end stops a flow from waiting.
func (l *level[V]) end(n *node[V]) {
	if n.place >= 0 {
		heap.Remove(&l.waiting, n.place)
	}
}

// serve advances virtual time for a taken item.
func (l *level[V]) serve(n *node[V]) { l.virtual = max(l.virtual, n.tag) }

// charge bills a flow for seconds, or refunds them if negative.
func (l *level[V]) charge(n *node[V], seconds float64) {
	n.tag += seconds / n.weight
	l.highest = max(l.highest, n.tag)
	if n.place >= 0 {
		heap.Fix(&l.waiting, n.place)
	}
}

// forgive starts a new busy period, in which all flows are even.
func (l *level[V]) forgive() { l.virtual = max(l.virtual, l.highest) }

// heapOf is a heap with the next flow to serve in front.
type heapOf[V any] []*node[V]

func (h heapOf[V]) Len() int { return len(h) }

func (h heapOf[V]) Less(i, j int) bool { return sooner(h[i], h[j]) }

func (h heapOf[V]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *heapOf[V]) Push(x any) {
	n := x.(*node[V])
	n.place = len(*h)
	*h = append(*h, n)
}

// Pop implements heap.Interface.
func (h *heapOf[V]) Pop() any {
	last := len(*h) - 1
	n := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	n.place = -1
	return n
}
