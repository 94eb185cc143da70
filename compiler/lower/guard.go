package lower

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// fitted is a region as a buffer has it: within the tensor's shape, unless tiles may go beyond.
func (l *lowerer) fitted(region []span, shape []int64) (mins []expr.Expr, extents []int64, lets ir.Block) {
	if !l.exact {
		return clamp(region, shape)
	}
	mins, extents = ends(region)
	return mins, extents, nil
}

// guarded leaves statements out for what guarded tiles have beyond the end.
func (n *nest) guarded(b ir.Block) (ir.Block, error) {
	var cond expr.Expr
	for _, it := range n.g.Iters {
		if n.guards(it) {
			v, _ := n.value(it)
			cond = both(cond, expr.Bin(expr.Lt, v, expr.I(n.extent(it))))
		}
	}
	if cond == nil {
		return b, nil
	}
	return ir.Block{&ir.If{Cond: expr.Simplify(cond), Then: b}}, nil
}

// guardsSeveral reports whether an axis is one of several that were fused and then cut into tiles of which the last
// one goes beyond the end.
func guardsSeveral(axis *schedule.Iter) bool {
	for axis.Fuse != nil {
		if axis = axis.Fuse.Into; isGuarded(axis) {
			return true
		}
	}
	return false
}

// guards reports whether any axis is cut into tiles of which the last one may go beyond the end.
func guards(s *schedule.Schedule) bool {
	return slices.ContainsFunc(s.Stages, func(g *schedule.Stage) bool { return slices.ContainsFunc(g.Iters, isGuarded) })
}

func isGuarded(it *schedule.Iter) bool { return it.Split != nil && it.Split.Tail == schedule.Guard }

// covered is a range of an axis with what its tiles have beyond it.
func (s span) covered(axis *schedule.Iter) span {
	if !isGuarded(axis) {
		return s
	}
	f := axis.Split.Factor
	return span{s.min, (s.extent + f - 1) / f * f}
}

// guards reports whether an iterator is cut into tiles of which the last one goes beyond the end.
func (n *nest) guards(it *schedule.Iter) bool {
	return isGuarded(it) && n.covered(it) > n.extent(it)
}

func both(a, b expr.Expr) expr.Expr {
	if a == nil {
		return b
	}
	return expr.Bin(expr.And, a, b)
}

// beyond is the condition under which the element at hand is one of the tensor's, as far as some of its axes are
// concerned, or all where which is nil; nil where it is known to be.
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
			cond = both(cond, expr.Bin(expr.Lt, v, expr.I(extent)))
		}
		if !ok || lo < 0 {
			cond = both(cond, expr.Bin(expr.Le, expr.I(0), v))
		}
	}
	return cond
}

// inside is the value of a stage at hand where its element is one of the tensor's, and beyond that what combining
// nothing gives, or zero: where the value is read from what goes beyond as well, it need not be told apart.
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
	if s, ok := value.(*expr.Select); ok && expr.Same(s.B, neutral) { // still a copy, where it was one
		cond, value = both(cond, s.Cond), s.A
	}
	return expr.Sel(expr.Simplify(cond), value, neutral)
}
