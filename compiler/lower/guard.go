package lower

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// fitted clamps a region to the tensor's shape, unless tiles may extend beyond.
func (l *lowerer) fitted(region []span, shape []int64) (mins []expr.Expr, extents []int64, lets ir.Block) {
	if !l.exact {
		return clamp(region, shape)
	}
	mins, extents = ends(region)
	return mins, extents, nil
}

// guarded guards statements for the parts of guarded tiles beyond the end.
func (n *nest) guarded(b ir.Block) ir.Block {
	var cond expr.Expr
	for _, it := range n.g.Iters {
		if n.guards(it) {
			v, _ := n.value(it)
			cond = expr.Both(cond, expr.Bin(expr.Lt, v, expr.I(n.extent(it))))
		}
	}
	if cond == nil {
		return b
	}
	return ir.Block{&ir.If{Cond: expr.Simplify(cond), Then: b}}
}

// guardsSeveral reports whether an axis is one of several that were fused and then split into tiles of which the
// last one exceeds the end.
func guardsSeveral(axis *schedule.Iter) bool {
	for axis.Fuse != nil {
		if axis = axis.Fuse.Into; isGuarded(axis) {
			return true
		}
	}
	return false
}

// guards reports whether any axis is split into tiles of which the last one may exceed the end.
func guards(s *schedule.Schedule) bool {
	return slices.ContainsFunc(s.Stages, func(g *schedule.Stage) bool { return slices.ContainsFunc(g.Iters, isGuarded) })
}

func isGuarded(it *schedule.Iter) bool { return it.Split != nil && it.Split.Tail == schedule.Guard }

// covered extends a range of an axis to whole tiles.
func (s span) covered(axis *schedule.Iter) span {
	if !isGuarded(axis) {
		return s
	}
	f := axis.Split.Factor
	return span{s.min, (s.extent + f - 1) / f * f, nil}
}

// guards reports whether an iterator is split into tiles of which the last one exceeds the end.
func (n *nest) guards(it *schedule.Iter) bool {
	return isGuarded(it) && n.covered(it) > n.extent(it)
}

// beyond returns the condition that the current element lies within the tensor along the axes selected by which, or
// along all if that is nil. It returns nil if this is known to hold.
func (l *lowerer) beyond(n *nest, vars map[*expr.Var]expr.Expr, which func(axis *expr.Var) bool) (cond expr.Expr) {
	if !l.exact {
		return nil
	}
	for k, axis := range n.g.Axes {
		extent := n.g.Tensor.Shape[k]
		if which != nil && !which(axis) || n.guards(n.g.Iters[k]) && n.extents[k] == extent {
			continue
		}
		v := vars[axis]
		lo, hi, ok := expr.Linearize(v).Bounds()
		if !ok || hi >= extent {
			cond = expr.Both(cond, expr.Bin(expr.Lt, v, expr.I(extent)))
		}
		if !ok || lo < 0 {
			cond = expr.Both(cond, expr.Bin(expr.Le, expr.I(0), v))
		}
	}
	return cond
}

// inside returns the current value of a stage within the tensor, and the combiner's identity, or zero, beyond it.
// If the value is itself read from padded data, no condition is needed.
func (l *lowerer) inside(n *nest, value expr.Expr, vars map[*expr.Var]expr.Expr) expr.Expr {
	loads := n.g.Loads()
	cond := l.beyond(n, vars, func(axis *expr.Var) bool {
		for _, load := range loads {
			if b := l.bindings[load.Tensor]; b != nil && !b.exact && expr.Uses(load, axis) {
				return true
			}
		}
		return false
	})
	if cond == nil {
		return value
	}
	neutral := n.g.Combiner.Identity(n.g.Tensor.DType)
	if s, ok := value.(*expr.Select); ok && expr.Same(s.B, neutral) { // preserves a copy
		cond, value = expr.Both(cond, s.Cond), s.A
	}
	return expr.Sel(expr.Simplify(cond), value, neutral)
}
