package lower

import (
	"cmp"
	"maps"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// nest is the state of the generation of one stage's loops. If a partial tile requires two versions of the inner
// loops, each has its own clone.
type nest struct {
	g *schedule.Stage
	// mins and extents are the region to compute: one entry per spatial axis, then one per reduction axis.
	mins    []expr.Expr
	extents []int64
	// needed is the region that the surrounding nest reads; nil for the whole stage.
	needed []span
	// values holds the iterators with known values.
	values map[*schedule.Iter]expr.Expr
	// sizes holds the iterations of the current tile of splits with a version for partial tiles, once it is decided.
	sizes map[*schedule.Split]int64
	// bases holds the first element of the current tile of shifted splits.
	bases map[*schedule.Split]expr.Expr
	// init is set while the reduction's initial values are written.
	init bool
	// decay is set while results so far are multiplied by the stage's decay.
	decay bool
	// started is set once the initial values are written.
	started bool
	// store returns an alternative statement for each element; nil while a stage is computed.
	store func(index expr.Expr) *ir.Store
	// held holds the extent of the inner iterator in an execution, at least 1, of each fusion over those that it has.
	held map[*schedule.Fuse]expr.Expr
	// bounded holds the iterators whose loops end with the execution's extent.
	bounded map[*schedule.Iter]bool
	// steps restricts the iterations of the outermost reduction loop; nil for all.
	steps *ir.Range
}

func newNest(g *schedule.Stage, mins []expr.Expr, extents []int64) *nest {
	n := &nest{g: g, values: map[*schedule.Iter]expr.Expr{}, sizes: map[*schedule.Split]int64{}, bases: map[*schedule.Split]expr.Expr{}, bounded: map[*schedule.Iter]bool{}}
	n.mins = append(n.mins, mins...)
	n.extents = append(n.extents, extents...)
	for _, r := range g.Reduce {
		n.mins = append(n.mins, expr.I(0))
		n.extents = append(n.extents, r.Extent)
	}
	return n
}

func (n *nest) clone() *nest {
	c := *n
	c.values, c.sizes, c.bases, c.bounded = maps.Clone(n.values), maps.Clone(n.sizes), maps.Clone(n.bases), maps.Clone(n.bounded)
	return &c
}

// extent returns the number of iterations of an iterator in the current version.
func (n *nest) extent(it *schedule.Iter) int64 {
	switch {
	case it.Parent != nil:
		parent, f := n.extent(it.Parent.Parent), it.Parent.Factor
		if it == it.Parent.Outer {
			return (parent + f - 1) / f
		}
		switch {
		case it.Parent.Tail == schedule.Guard:
			return f
		case n.sizes[it.Parent] > 0:
			return n.sizes[it.Parent]
		}
		return min(parent, f)
	case it.Fused != nil:
		return n.extent(it.Fused.A) * n.extent(it.Fused.B)
	case it.Axis < 0:
		return 1
	default:
		return n.extents[it.Axis]
	}
}

// covered returns the number of iterations of an iterator, rounded up to whole tiles.
func (n *nest) covered(it *schedule.Iter) int64 {
	if it.Split != nil && it.Split.Tail == schedule.Guard {
		return n.extent(it.Split.Outer) * it.Split.Factor
	}
	return n.extent(it)
}

// partial reports whether a split's last tile may not be full.
func (n *nest) partial(sp *schedule.Split) bool {
	parent := n.extent(sp.Parent)
	switch sp.Tail {
	case schedule.Guard:
		return false
	case schedule.Fit:
		return parent > 1
	}
	return sp.Factor < parent && parent%sp.Factor != 0
}

// value returns an iterator's value; ok is false while it depends on leaves that are not generated yet.
func (n *nest) value(it *schedule.Iter) (v expr.Expr, ok bool) {
	if v, ok = n.values[it]; ok {
		return v, true
	}
	switch {
	case it.Split != nil:
		inner, ok := n.value(it.Split.Inner)
		if !ok {
			return nil, false
		}
		base, ok := n.base(it.Split)
		if !ok {
			return nil, false
		}
		return expr.AddE(base, inner), true
	case it.Fuse != nil:
		f, ok := n.value(it.Fuse.Into)
		if !ok {
			return nil, false
		}
		return n.unfused(it, f), true
	}
	return nil, false
}

// unfused returns the value of an iterator that was fused, where the fused one has the value f.
func (n *nest) unfused(it *schedule.Iter, f expr.Expr) expr.Expr {
	b := cmp.Or(n.held[it.Fuse], expr.I(n.extent(it.Fuse.B)))
	if it == it.Fuse.A {
		return expr.Bin(expr.FloorDiv, f, b)
	}
	return expr.Bin(expr.FloorMod, f, b)
}

// base returns the first element of a split's current tile.
func (n *nest) base(sp *schedule.Split) (expr.Expr, bool) {
	if b, ok := n.bases[sp]; ok {
		return b, true
	}
	outer, ok := n.value(sp.Outer)
	if !ok {
		return nil, false
	}
	return expr.MulE(outer, expr.I(sp.Factor)), true
}

// axis returns an axis' value relative to the region; every leaf must be generated.
func (n *nest) axis(k int) expr.Expr {
	v, ok := n.value(n.g.Iters[k])
	if !ok {
		fail("stage %d: axis %d has no value in its innermost loop", n.g.ID, k)
	}
	return v
}

// span returns an iterator's range at this point of the nest: leaves not generated yet run over their whole extent.
func (n *nest) span(it *schedule.Iter) span {
	if v, ok := n.value(it); ok {
		return span{v, 1, nil}
	}
	whole := span{expr.I(0), n.covered(it), nil}
	switch {
	case it.Split != nil:
		return n.splitSpan(it, whole)
	case it.Fuse != nil && n.held[it.Fuse] == nil:
		return n.fuseSpan(it, whole)
	}
	return whole
}

func (n *nest) splitSpan(it *schedule.Iter, whole span) span {
	sp := it.Split
	inner := n.span(sp.Inner)
	if base, ok := n.base(sp); ok {
		return span{expr.AddE(base, inner.min), inner.extent, nil}
	}
	if inner.extent < n.extent(sp.Inner) {
		return whole
	}
	outer := n.span(sp.Outer)
	first := expr.MulE(outer.min, expr.I(sp.Factor))
	if sp.Tail == schedule.Shift && n.partial(sp) { // the last tile starts earlier
		first = expr.MinE(first, expr.I(whole.extent-sp.Factor))
	}
	if sp.Tail == schedule.Guard {
		return span{first, outer.extent * sp.Factor, nil}
	}
	return span{first, min(outer.extent*sp.Factor, whole.extent), nil}
}

func (n *nest) fuseSpan(it *schedule.Iter, whole span) span {
	f, inner := n.span(it.Fuse.Into), n.extent(it.Fuse.B)
	rest := expr.Simplify(expr.Bin(expr.FloorMod, f.min, expr.I(inner)))
	aligned := expr.Same(rest, expr.I(0))
	switch {
	case aligned && f.extent%inner == 0: // whole rows
		if it == it.Fuse.B {
			return whole
		}
		return span{expr.Bin(expr.FloorDiv, f.min, expr.I(inner)), f.extent / inner, nil}
	case withinRow(rest, f.extent, inner): // a part of one row
		if it == it.Fuse.B {
			return span{rest, f.extent, nil}
		}
		return span{expr.Bin(expr.FloorDiv, f.min, expr.I(inner)), 1, nil}
	case it == it.Fuse.A && (f.extent < n.extent(it.Fuse.Into) || isGuarded(it.Fuse.Into)):
		rows := (f.extent+inner-2)/inner + 1
		if isGuarded(it.Fuse.Into) { // some may be beyond the end
			return span{expr.Bin(expr.FloorDiv, f.min, expr.I(inner)), rows, nil}
		}
		return span{expr.Bin(expr.FloorDiv, f.min, expr.I(inner)), min(rows, whole.extent), nil}
	}
	return whole
}

// withinRow reports whether [rest, rest+extent) does not cross a multiple of row; rest is in [0, row).
func withinRow(rest expr.Expr, extent, row int64) bool {
	_, hi, ok := expr.Linearize(rest).Bounds()
	if ok && hi+extent <= row {
		return true
	}
	if row%extent != 0 {
		return false
	}
	return expr.Same(expr.Simplify(expr.Bin(expr.FloorMod, rest, expr.I(extent))), expr.I(0))
}
