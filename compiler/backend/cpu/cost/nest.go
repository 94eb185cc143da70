package cost

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Nest holds the loops of a statement around a box of its axes.
type Nest struct {
	Stage *schedule.Stage
	// Axes holds how many values of each axis the statement computes at a time, spatial axes first.
	Axes []float64
	// extent and place hold, by iterator, the number of its values and its position among the leaves (-1 for
	// non-leaves).
	extent, place []float64
	// loops holds the leaves' loops, outermost first.
	loops []looping
	// Overlap is the factor of redundant computation by tiles that are shifted back to be full; at least 1.
	Overlap float64
}

// looping is one loop. A leaf fused from several iterators has one loop for each, in their order.
type looping struct {
	// leaf is the leaf's position, trips the number of iterations, and span how many of the leaf's values this loop
	// and those inside it cover.
	leaf        int
	trips, span float64
}

// fit sets the extents of all iterators from those of the axes. Derived iterators follow their sources.
func (n *Nest) fit(room *arena) {
	iters := n.Stage.Iters
	n.extent, n.place, n.Overlap = room.take(len(iters)), room.take(len(iters)), 1
	for k, it := range iters {
		n.place[k] = -1
		switch {
		case it.Axis >= 0:
			n.extent[k] = n.Axes[it.Axis]
		case it.Fused != nil:
			n.extent[k] = n.extent[it.Fused.A.ID] * n.extent[it.Fused.B.ID]
		case it.Parent == nil:
			n.extent[k] = 1
		case it == it.Parent.Outer:
			n.extent[k] = math.Ceil(n.extent[it.Parent.Parent.ID] / float64(it.Parent.Factor))
		default:
			n.extent[k] = min(n.extent[it.Parent.Parent.ID], float64(it.Parent.Factor))
		}
		if sp := it.Parent; sp != nil && it == sp.Outer && sp.Tail == schedule.Shift {
			n.Overlap *= max(1, n.extent[k]*float64(sp.Factor)/n.extent[sp.Parent.ID])
		}
	}
	n.loops = n.loops[:0]
	for p, it := range n.Stage.Leaves {
		n.place[it.ID] = float64(p)
		n.unfuse(it, p, 1)
	}
}

// unfuse adds the loops of a leaf, or of a part of it. inside is the number of the leaf's values within each value of
// the part.
func (n *Nest) unfuse(it *schedule.Iter, leaf int, inside float64) {
	if it.Fused == nil {
		n.loops = append(n.loops, looping{leaf, n.extent[it.ID], n.extent[it.ID] * inside})
		return
	}
	n.unfuse(it.Fused.A, leaf, n.extent[it.Fused.B.ID]*inside)
	n.unfuse(it.Fused.B, leaf, inside)
}

// kept returns the fraction of the nest's iterations that run. Trimmed loops omit padding.
func (n *Nest) kept() float64 {
	part := 1.0
	for _, it := range n.Stage.Leaves {
		left := 1.0
		for _, w := range it.Windows {
			values, atOnce := int64(1), int64(1)
			if w.Along >= 0 {
				values, atOnce = n.Stage.Axes[w.Along].Extent, max(1, int64(n.Axes[w.Along]))
			}
			left = min(left, w.Kept(values, atOnce, n.Stage.AxisVar(it.Axis).Extent))
		}
		part *= left
	}
	return part
}

// last returns the number of the innermost loop of a leaf.
func (n *Nest) last(leaf int) int {
	at := len(n.loops) - 1
	for at > 0 && n.loops[at].leaf > leaf {
		at--
	}
	return at
}

// within sets how many values of each axis the loops from a number inwards cover.
func (n *Nest) within(loop int, axes []float64, room *arena) { n.cover(loop, axes, room, (*Nest).few) }

// box sets the bounding box, in values of each axis, of the loops from a number inwards. That box is computed for
// them.
func (n *Nest) box(loop int, axes []float64, room *arena) { n.cover(loop, axes, room, (*Nest).all) }

// along reports whether a sum of axes with these coefficients advances by the same step between consecutive values of
// fused axes, as the position in a tensor does along rows and columns. Such an access is not a box of these axes.
func (n *Nest) along(row []float64) bool {
	for _, it := range n.Stage.Iters {
		if f := it.Fused; f != nil && wholeAxes(it) && row[axisOf(f.A)] != row[axisOf(f.B)]*n.extent[f.B.ID] {
			return false
		}
	}
	return true
}

// wholeAxes reports whether an iterator is an axis or a fusion of axes.
func wholeAxes(it *schedule.Iter) bool {
	return it.Axis >= 0 || it.Fused != nil && wholeAxes(it.Fused.A) && wholeAxes(it.Fused.B)
}

// few returns the minimum number of values of the outer and the inner fused iterator that the given number of values
// of the fusion have.
func (n *Nest) few(f *schedule.Fuse, values float64) (outer, inner float64) {
	size := n.extent[f.B.ID]
	return math.Ceil(values / size), min(values, size)
}

// all returns their number in the bounding box: a part that does not divide the inner iterator crosses its end
// sometimes.
func (n *Nest) all(f *schedule.Fuse, values float64) (outer, inner float64) {
	size := n.extent[f.B.ID]
	if math.Mod(size, values) == 0 || math.Mod(values, size) == 0 {
		return n.few(f, values)
	}
	return min(n.extent[f.A.ID], math.Ceil(values/size)+1), size
}

// cover implements within and box. parts maps values of a fusion to those of the fused iterators.
func (n *Nest) cover(loop int, axes []float64, room *arena, parts func(*Nest, *schedule.Fuse, float64) (float64, float64)) {
	leaf, part := len(n.Stage.Leaves), 1.0
	if loop < len(n.loops) {
		leaf, part = n.loops[loop].leaf, n.loops[loop].span
	}
	iters := n.Stage.Iters
	span := room.take(len(iters))
	for k := len(iters) - 1; k >= 0; k-- {
		it := iters[k]
		switch {
		case it.Split != nil:
			span[k] = n.splitSpan(it, span)
		case it.Fuse != nil:
			outer, inner := parts(n, it.Fuse, span[it.Fuse.Into.ID])
			if span[k] = outer; it == it.Fuse.B {
				span[k] = inner
			}
		case int(n.place[k]) > leaf:
			span[k] = n.extent[k]
		case int(n.place[k]) == leaf:
			span[k] = part
		default:
			span[k] = 1
		}
	}
	copy(axes, span)
}

func (n *Nest) splitSpan(it *schedule.Iter, span []float64) float64 {
	outer, inner := span[it.Split.Outer.ID], span[it.Split.Inner.ID]
	if inner == n.extent[it.Split.Inner.ID] {
		return min(n.extent[it.ID], outer*inner)
	}
	return min(n.extent[it.ID], (outer-1)*float64(it.Split.Factor)+inner)
}

// axisOf returns the axis that a leaf runs along, the innermost one of a fusion, or -1 for a unit loop.
func axisOf(it *schedule.Iter) int {
	for it.Axis < 0 {
		switch {
		case it.Fused != nil:
			it = it.Fused.B
		case it.Parent != nil:
			it = it.Parent.Parent
		default:
			return -1
		}
	}
	return it.Axis
}
