package lower

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// tighten replaces the spans of a load's indices by smaller ones if an index uses several axes. Axis by axis, a
// tile of six positions across the end of a row covers two whole rows. That the position, row*width + column,
// covers only six is visible only if the axes are expressed by the loops they derive from. If tiles exceed the ends
// of several fused axes, this is the only complete bound.
func (n *nest) tighten(spans []span, load *expr.Load, exact bool) {
	var values map[*expr.Var]expr.Expr
	ranges := map[*expr.Var]span{}
	for k, x := range load.Index {
		if spans[k].extent == 1 || !n.severalAxes(x) {
			continue
		}
		if values == nil {
			values = n.placedAxes(ranges)
		}
		if !n.allPlaced(x, values) {
			continue
		}
		s, ok := spanOf(expr.Linearize(expr.Substitute(x, values)), ranges)
		if ok && (exact || s.extent < spans[k].extent) {
			spans[k] = span{expr.Simplify(s.min), s.extent, nil}
		}
	}
}

// severalAxes reports whether an index uses more than one of the stage's axes.
func (n *nest) severalAxes(x expr.Expr) bool {
	used := 0
	for k := range n.extents {
		if v := n.g.AxisVar(k); v.Extent > 1 && expr.Uses(x, v) {
			used++
		}
	}
	return used > 1
}

// allPlaced reports whether each axis that an index uses has a value.
func (n *nest) allPlaced(x expr.Expr, values map[*expr.Var]expr.Expr) bool {
	for k := range n.extents {
		if v := n.g.AxisVar(k); values[v] == nil && expr.Uses(x, v) {
			return false
		}
	}
	return true
}

// placedAxes returns the values of the axes that can be expressed by loops; loops not generated yet are variables
// with their ranges.
func (n *nest) placedAxes(ranges map[*expr.Var]span) map[*expr.Var]expr.Expr {
	leaves, values := map[*schedule.Iter]*expr.Var{}, map[*expr.Var]expr.Expr{}
	for k := range n.extents {
		if v, ok := n.placed(n.g.Iters[k], leaves, ranges); ok {
			values[n.g.AxisVar(k)] = expr.AddE(n.mins[k], v)
		}
	}
	return values
}

// placed returns an iterator's value for placedAxes; ok is false for tiles that may be shifted while their place is
// unknown.
func (n *nest) placed(it *schedule.Iter, leaves map[*schedule.Iter]*expr.Var, ranges map[*expr.Var]span) (v expr.Expr, ok bool) {
	if v, ok := n.values[it]; ok {
		return v, true
	}
	switch {
	case it.Split != nil:
		return n.placedSplit(it.Split, leaves, ranges)
	case it.Fuse != nil:
		f, ok := n.placed(it.Fuse.Into, leaves, ranges)
		if !ok {
			return nil, false
		}
		return n.unfused(it, f), true
	}
	if leaves[it] == nil {
		leaf := &expr.Var{Name: fmt.Sprintf("l%d", it.ID), Extent: n.extent(it)}
		leaves[it], ranges[leaf] = leaf, span{expr.I(0), leaf.Extent, nil}
	}
	return leaves[it], true
}

func (n *nest) placedSplit(sp *schedule.Split, leaves map[*schedule.Iter]*expr.Var, ranges map[*expr.Var]span) (v expr.Expr, ok bool) {
	inner, ok := n.placed(sp.Inner, leaves, ranges)
	if !ok {
		return nil, false
	}
	if base, known := n.base(sp); known {
		return expr.AddE(base, inner), true
	}
	if sp.Tail == schedule.Shift && n.partial(sp) {
		return nil, false
	}
	outer, ok := n.placed(sp.Outer, leaves, ranges)
	if !ok {
		return nil, false
	}
	return expr.AddE(expr.MulE(outer, expr.I(sp.Factor)), inner), true
}
