package aot

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/target"
)

// alignment is the alignment of every buffer, in bytes.
type alignment int64

const (
	// onProcessors is the alignment of the kernel ABI; onDevices is that of memory from device drivers, in which
	// candidates are measured.
	onProcessors alignment = program.Alignment
	onDevices    alignment = 256
)

// alignmentFor returns the alignment of a target's packages.
func alignmentFor(t *target.Target) alignment {
	if t.RunsOnCPU() {
		return onProcessors
	}
	return onDevices
}

func (a alignment) up(n int64) int64 { return (n + int64(a) - 1) / int64(a) * int64(a) }

// span is a buffer that is live during the calls from..to, inclusive.
type span struct {
	bytes    int64
	from, to int
}

func (s span) overlaps(o span) bool { return s.from <= o.to && o.from <= s.to }

// place assigns each span an offset such that spans alive at the same time do not overlap, and returns the total size.
// The minimum is NP-hard to find. place tries greedy placement in several orders (among them largest first, after
// Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, 2020, section 5.1), and improves the
// best order by moving the span at the top earlier, until the size is the lower bound or no improvement is found.
//
// If open is set, executions may use just the beginnings of spans. A placement of the same size is preferred then in
// which spans begin where earlier ones did, so that these beginnings are in a cache.
func (a alignment) place(spans []span, open bool) (offsets []int64, total int64) {
	best := placement{total: math.MaxInt64}
	for _, order := range orders(spans) {
		if p := a.placeInOrder(spans, order, 0); p.total < best.total {
			best = p
		}
	}
	smallest, random := a.lowerBound(spans), rand.New(rand.NewPCG(1, 1))
	for range min(maxRounds, maxPlacingSteps/(1+len(spans)*len(spans))) {
		if best.total <= smallest {
			break
		}
		if p := a.placeInOrder(spans, a.raised(best, spans, random), 0); p.total <= best.total {
			best = p
		}
	}
	if open {
		best = a.gathered(best, spans)
	}
	return best.offsets, best.total
}

// gathered returns the placement that touches the least memory at small extents, among p and those of the same size
// whose spans have common beginnings.
func (a alignment) gathered(p placement, spans []span) placement {
	best, least := p, p.touched(spans)
	for _, order := range append(orders(spans), p.order) {
		other := a.placeInOrder(spans, order, p.total)
		if bytes := other.touched(spans); other.total <= p.total && bytes < least {
			best, least = other, bytes
		}
	}
	return best
}

// touched returns how many bytes an execution touches that uses an eighth of each span.
func (p placement) touched(spans []span) (bytes int64) {
	end := int64(0)
	for _, k := range slices.SortedFunc(slices.Values(p.order), func(x, y int) int { return cmp.Compare(p.offsets[x], p.offsets[y]) }) {
		used := p.offsets[k] + spans[k].bytes/8
		bytes += max(0, used-max(end, p.offsets[k]))
		end = max(end, used)
	}
	return bytes
}

const (
	// maxRounds limits the improvements of a placement, maxPlacingSteps their comparisons of two spans.
	maxRounds       = 1000
	maxPlacingSteps = 1 << 25
)

// placement is the result of placing spans in an order.
type placement struct {
	order   []int
	offsets []int64
	total   int64
}

// orders returns the orders for greedy placement: by size, by size times lifetime, by lifetime, and by time.
func orders(spans []span) [][]int {
	keys := []func(s span) int64{
		func(s span) int64 { return s.bytes },
		func(s span) int64 { return s.bytes * int64(s.to-s.from+1) },
		func(s span) int64 { return int64(s.to - s.from) },
		func(s span) int64 { return int64(-s.from) },
	}
	list := make([][]int, len(keys))
	for i, key := range keys {
		list[i] = make([]int, len(spans))
		for k := range spans {
			list[i][k] = k
		}
		slices.SortStableFunc(list[i], func(a, b int) int {
			return cmp.Or(cmp.Compare(key(spans[b]), key(spans[a])), cmp.Compare(spans[b].bytes, spans[a].bytes))
		})
	}
	return list
}

// placeInOrder puts each span into the lowest gap that fits; with a limit, where another begins, if it ends below.
func (a alignment) placeInOrder(spans []span, order []int, limit int64) placement {
	p := placement{order: order, offsets: make([]int64, len(spans))}
	var placed []int // by offset
	for _, k := range order {
		if spans[k].bytes == 0 {
			continue
		}
		offset := p.gap(a, spans, placed, k, limit)
		p.offsets[k] = offset
		p.total = max(p.total, a.up(offset+spans[k].bytes))
		at, _ := slices.BinarySearchFunc(placed, offset, func(o int, x int64) int { return cmp.Compare(p.offsets[o], x) })
		placed = slices.Insert(placed, at, k)
	}
	return p
}

// gap returns the offset of a span among those placed before.
func (p placement) gap(a alignment, spans []span, placed []int, k int, limit int64) int64 {
	const none = math.MaxInt64
	lowest, end, start := int64(none), int64(0), int64(none) // start is where another span begins in the current gap
	for _, o := range placed {
		at := p.offsets[o]
		switch {
		case !spans[o].overlaps(spans[k]):
			if at >= end {
				start = min(start, at)
			}
			continue
		case limit > 0 && at-start >= spans[k].bytes:
			return start
		case at-end >= spans[k].bytes:
			lowest = min(lowest, end)
		}
		end, start = max(end, a.up(at+spans[o].bytes)), none
	}
	if limit > 0 && limit-start >= spans[k].bytes {
		return start
	}
	return min(lowest, end)
}

// raised returns an order in which a span at the top of memory comes earlier.
func (a alignment) raised(p placement, spans []span, random *rand.Rand) []int {
	top := 0
	for at, k := range p.order {
		if spans[k].bytes > 0 && a.up(p.offsets[k]+spans[k].bytes) == p.total {
			top = at
		}
	}
	order := slices.Delete(slices.Clone(p.order), top, top+1)
	return slices.Insert(order, random.IntN(top+1), p.order[top])
}

// lowerBound returns the peak of live bytes over all calls: no placement is smaller.
func (a alignment) lowerBound(spans []span) int64 {
	var peak int64
	for _, s := range spans { // the maximum is reached at the start of some span
		var alive int64
		for _, o := range spans {
			if o.from <= s.from && s.from <= o.to {
				alive += a.up(o.bytes)
			}
		}
		peak = max(peak, alive)
	}
	return peak
}
