package policy

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
