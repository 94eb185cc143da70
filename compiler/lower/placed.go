package lower

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// tighten replaces spans of a load's indices by smaller ones where an index uses several axes. What is known of each
// axis by itself is that a tile of six positions across the end of a row lies in two whole rows; that the position,
// row*width + column, runs over six shows only when the axes are written in terms of the loops that they come from.
// Where tiles go beyond the ends of several axes that were fused, only that tells all that they take.
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
			spans[k] = span{expr.Simplify(s.min), s.extent}
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

// placedAxes are the values of the axes that can be told in terms of loops; loops not generated yet are variables,
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

// placed is an iterator's value as placedAxes has it; ok is false for tiles that may be shifted while their place is
// not known.
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
		leaves[it], ranges[leaf] = leaf, span{expr.I(0), leaf.Extent}
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
