package lower

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// trimmed is which iterations over an axis of a reduction read something other than padding for any of the elements
// that the loops inside compute; nil where that is not known.
func (l *lowerer) trimmed(n *nest, it *schedule.Iter) *ir.Range {
	axis := n.g.AxisVar(it.Axis)
	first, end := expr.I(0), expr.I(axis.Extent)
	for _, band := range l.s.Bands(n.g, axis) {
		step, least, most, ok := l.reach(n, band.Index, axis)
		if !ok {
			continue
		}
		round := func(e expr.Expr) expr.Expr {
			return expr.Bin(expr.FloorDiv, expr.AddE(e, expr.I(step-1)), expr.I(step))
		}
		first = expr.MaxE(first, round(expr.SubE(expr.I(band.First), most)))
		end = expr.MinE(end, round(expr.SubE(expr.I(band.End), least)))
	}
	first, end = expr.Simplify(first), expr.Simplify(end)
	if expr.Same(first, expr.I(0)) && expr.Same(end, expr.I(axis.Extent)) {
		return nil
	}
	return &ir.Range{First: first, End: end, Every: 1, Mean: float64(axis.Extent)}
}

// reach is how far an index moves with an axis of the reduction, and the least and the most that the rest of it is
// among the elements that the loops inside compute.
func (l *lowerer) reach(n *nest, index expr.Expr, axis *expr.Var) (step int64, least, most expr.Expr, ok bool) {
	linear := expr.Linearize(index)
	least, most = expr.I(linear.Const), expr.I(linear.Const)
	for _, term := range linear.Terms {
		if term.Atom == axis {
			step = term.Coef
			continue
		}
		k := slices.IndexFunc(slices.Concat(n.g.Axes, n.g.Reduce), func(v *expr.Var) bool { return v == term.Atom })
		if k < 0 || term.Coef < 0 {
			return 0, nil, nil, false
		}
		at := n.span(n.g.Iters[k])
		from := expr.AddE(n.mins[k], at.min)
		least = expr.AddE(least, expr.MulE(expr.I(term.Coef), from))
		most = expr.AddE(most, expr.MulE(expr.I(term.Coef), expr.AddE(from, expr.I(at.extent-1))))
	}
	return step, least, most, step > 0
}
