package aot

import (
	"cmp"
	"slices"
)

// alignment of every buffer, by the kernel ABI.
const alignment = 64

func alignUp(n int64) int64 { return (n + alignment - 1) / alignment * alignment }

// span is a buffer that holds its bytes during the calls from..to, inclusive.
type span struct {
	bytes    int64
	from, to int
}

func (s span) overlaps(o span) bool { return s.from <= o.to && o.from <= s.to }

// place gives each span an offset such that spans alive at the same time do not share bytes, and returns the size of the
// whole. Large spans first, each into the lowest gap that holds it: the greedy-by-size heuristic of Pisarchyk and Lee
// (Efficient Memory Management for Deep Neural Net Inference, 2020, section 5.1).
func place(spans []span) (offsets []int64, total int64) {
	order := make([]int, len(spans))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(spans[b].bytes, spans[a].bytes) })
	offsets = make([]int64, len(spans))
	var placed []int // by offset
	for _, k := range order {
		offset := int64(0)
		for _, p := range placed {
			if !spans[p].overlaps(spans[k]) {
				continue
			}
			if offsets[p]-offset >= spans[k].bytes {
				break
			}
			offset = max(offset, alignUp(offsets[p]+spans[p].bytes))
		}
		offsets[k] = offset
		total = max(total, offset+spans[k].bytes)
		at, _ := slices.BinarySearchFunc(placed, offset, func(p int, o int64) int { return cmp.Compare(offsets[p], o) })
		placed = slices.Insert(placed, at, k)
	}
	return offsets, alignUp(total)
}

// lowerBound is the most bytes alive during any one call: no placement needs less.
func lowerBound(spans []span) int64 {
	var most int64
	for _, s := range spans { // the maximum is reached where some span begins
		var alive int64
		for _, o := range spans {
			if o.from <= s.from && s.from <= o.to {
				alive += alignUp(o.bytes)
			}
		}
		most = max(most, alive)
	}
	return most
}
