package lower

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// trimmed returns the range of iterations over a reduction axis that read more than padding for any element
// computed by the inner loops; nil for all.
func (l *lowerer) trimmed(n *nest, it *schedule.Iter) *ir.Range {
	extent := n.g.AxisVar(it.Axis).Extent
	first, end, kept := expr.I(0), expr.I(extent), 1.0
	for _, w := range it.Windows {
		lo, hi := expr.I(0), expr.I(0)
		values, atOnce := int64(1), int64(1)
		if w.Along >= 0 {
			at := n.span(n.g.Iters[w.Along])
			values, atOnce = n.g.Axes[w.Along].Extent, at.extent
			from := expr.AddE(n.mins[w.Along], at.min)
			lo, hi = expr.MulE(expr.I(w.Stride), from), expr.MulE(expr.I(w.Stride), expr.AddE(from, expr.I(at.extent-1)))
		}
		steps := func(e expr.Expr) expr.Expr {
			return expr.Bin(expr.FloorDiv, expr.AddE(e, expr.I(w.Step-1)), expr.I(w.Step))
		}
		first = expr.MaxE(first, steps(expr.SubE(expr.I(w.First), hi)))
		end = expr.MinE(end, steps(expr.SubE(expr.I(w.End), lo)))
		kept = min(kept, w.Kept(values, atOnce, extent))
	}
	first, end = expr.Simplify(first), expr.Simplify(end)
	if expr.Same(first, expr.I(0)) && expr.Same(end, expr.I(extent)) {
		return nil
	}
	return &ir.Range{First: first, End: end, Every: 1, Mean: kept * float64(extent)}
}
