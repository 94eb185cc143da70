package policy

import "container/heap"

// level is weighted fair queueing among the flows of one level.
type level[V any] struct {
	// next and tags hold the waiting flows, by the end and by the start of their next item.
	next, tags Heap[*node[V]]
	// virtual is the virtual time: the least tag of the waiting flows when an item was last taken. It never decreases.
	virtual float64
	// highest is the highest tag so far, left the highest of the forgotten flows of each weight.
	highest float64
	left    map[float64]float64
	// item is the typical length of an item in seconds, average the moving average that it follows. Lengths beyond
	// maxItem count as maxItem.
	item, average, maxItem float64
	begun                  uint64
}

// node is a flow.
type node[V any] struct {
	value  V
	weight float64
	// tag is the virtual start time of the flow's next item.
	tag float64
	// order breaks ties: the flow that began to wait first wins.
	order   uint64
	waiting bool
	place   [2]int // in next and tags, while waiting
}

func newLevel[V any](maxItem float64) *level[V] {
	l := &level[V]{item: 1, average: 1, maxItem: maxItem}
	l.next = NewHeap(l.sooner, func(n *node[V]) *int { return &n.place[0] })
	l.tags = NewHeap(func(a, b *node[V]) bool { return a.tag < b.tag }, func(n *node[V]) *int { return &n.place[1] })
	return l
}

// newFlow returns a flow. It continues where the last flow of its weight ended, since otherwise a succession of heavy
// flows would keep light ones waiting for ever.
func (l *level[V]) newFlow(value V, weight float64) *node[V] {
	n := &node[V]{value: value}
	l.setWeight(n, weight)
	n.tag = l.left[n.weight]
	return n
}

// forget notes where an ended flow has got to.
func (l *level[V]) forget(n *node[V]) {
	if l.left == nil {
		l.left = map[float64]float64{}
	}
	l.left[n.weight] = max(l.left[n.weight], n.tag)
}

// finish returns the virtual time at which a flow's next item would end if it were of typical length.
func (l *level[V]) finish(n *node[V]) float64 { return n.tag + l.item/n.weight }

// sooner reports whether waiting flow a is served before b.
func (l *level[V]) sooner(a, b *node[V]) bool {
	if x, y := l.finish(a), l.finish(b); x != y {
		return x < y
	}
	return a.order < b.order
}

func (l *level[V]) setWeight(n *node[V], w float64) {
	if !(w > 0) {
		w = 1
	}
	n.weight = w
	l.moved(n)
}

// begin makes a flow wait, unless it already does.
func (l *level[V]) begin(n *node[V]) {
	if n.waiting {
		return
	}
	n.tag = max(n.tag, l.virtual)
	l.begun++
	n.order = l.begun
	l.resume(n)
}

// resume makes a flow wait again with its old tag.
func (l *level[V]) resume(n *node[V]) {
	n.waiting = true
	heap.Push(&l.next, n)
	heap.Push(&l.tags, n)
}

// end stops a flow from waiting.
func (l *level[V]) end(n *node[V]) {
	if n.waiting {
		heap.Remove(&l.next, n.place[0])
		heap.Remove(&l.tags, n.place[1])
		n.waiting = false
	}
}

// moved restores the order after a change of a flow's tag or weight.
func (l *level[V]) moved(n *node[V]) {
	if n.waiting {
		heap.Fix(&l.next, n.place[0])
		heap.Fix(&l.tags, n.place[1])
	}
}

// serve advances virtual time before an item is taken.
func (l *level[V]) serve() { l.virtual = max(l.virtual, l.tags.All[0].tag) }

// charge bills a flow for seconds, or refunds them if negative.
func (l *level[V]) charge(n *node[V], seconds float64) {
	n.tag += seconds / n.weight
	l.highest = max(l.highest, n.tag)
	l.moved(n)
}

// learn adapts the typical length to an item that ended. It reorders the flows only after a considerable change.
func (l *level[V]) learn(seconds float64) {
	const rate, change = 0.2, 2
	l.average += rate * (min(seconds, l.maxItem) - l.average)
	if l.average > change*l.item || l.average < l.item/change {
		l.item = l.average
		heap.Init(&l.next)
	}
}

// forgive starts a new busy period, in which all flows are even.
func (l *level[V]) forgive() {
	l.virtual = max(l.virtual, l.highest)
	clear(l.left)
}
