package lower

import (
	"cmp"
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// readLimits reads the extents that limits depend on into variables, before all loops. The variables have the bounds
// of the extents, which decide conditions that hold for all of them.
func (l *lowerer) readLimits() (lets ir.Block) {
	for _, g := range l.s.Stages {
		for k := range len(g.Axes) + len(g.Reduce) {
			limit := g.AxisVar(k).Limit
			if limit == nil {
				continue
			}
			for _, load := range expr.Loads(limit) {
				if l.counts[load.Tensor] == nil {
					v := &expr.Var{Name: fmt.Sprintf("n%d", len(l.counts)), Extent: load.Tensor.Max + 1}
					read := &expr.Load{Tensor: l.bindings[load.Tensor].buffer.Tensor, Index: []expr.Expr{expr.I(0)}}
					l.counts[load.Tensor] = v
					lets = append(lets, &ir.Let{Var: v, Value: read})
				}
			}
		}
	}
	return lets
}

// limit returns the limit of an axis; nil if it is unlimited.
func (l *lowerer) limit(v *expr.Var) expr.Expr {
	if v.Limit == nil {
		return nil
	}
	return expr.Simplify(expr.Rewrite(v.Limit, l.counted))
}

// counted returns the variable of an extent that was read before all loops.
func (l *lowerer) counted(e expr.Expr) expr.Expr {
	if load, ok := e.(*expr.Load); ok {
		if v := l.counts[load.Tensor]; v != nil {
			return v
		}
	}
	return e
}

// indexing returns the stages whose elements are parts of indices. Tiles read them beyond limits, and what is there
// must be within the indexed tensors, as all that such stages compute is.
func indexing(s *schedule.Schedule) map[*schedule.Stage]bool {
	found := map[*schedule.Stage]bool{}
	var add func(e expr.Expr)
	add = func(e expr.Expr) {
		for _, load := range expr.Loads(e) {
			if g := s.Producer(load.Tensor); g != nil && load.DType().IsInt() && !found[g] {
				found[g] = true
				add(g.Body)
			}
		}
	}
	for _, g := range s.Stages {
		for _, load := range expr.Loads(g.Body) {
			for _, x := range load.Index {
				add(x)
			}
		}
	}
	return found
}

// bound returns the number of iterations of an iterator in an execution, which may be negative; nil if it is not
// known to be less than the extent.
func (l *lowerer) bound(n *nest, it *schedule.Iter) expr.Expr {
	switch {
	case it.Parent != nil:
		whole := l.bound(n, it.Parent.Parent)
		if whole == nil {
			return nil
		}
		if it == it.Parent.Outer {
			f := it.Parent.Factor
			return expr.Simplify(expr.Bin(expr.FloorDiv, expr.AddE(whole, expr.I(f-1)), expr.I(f)))
		}
		base, known := n.base(it.Parent)
		if !known {
			return nil
		}
		return expr.SubE(whole, base)
	case it.Fused != nil:
		rows, columns := l.bound(n, it.Fused.A), expr.I(n.extent(it.Fused.B))
		if n.held[it.Fused] != nil {
			rows, columns = cmp.Or(rows, expr.I(n.extent(it.Fused.A))), l.bound(n, it.Fused.B)
		}
		if rows == nil {
			return nil
		}
		return expr.MulE(rows, columns)
	case it.Axis < 0:
		return nil
	}
	end := l.end(n, it.Axis)
	if end == nil {
		return nil
	}
	return expr.SubE(end, n.mins[it.Axis])
}

// hold sets the extents, at least 1, that fusions of a stage's whole nest have in an execution.
func (l *lowerer) hold(n *nest) {
	n.held = map[*schedule.Fuse]expr.Expr{}
	for _, it := range n.g.Iters {
		if f := it.Fused; f != nil && f.Held {
			if end := l.bound(n, f.B); end != nil {
				n.held[f] = expr.Simplify(expr.MaxE(end, expr.I(1)))
			}
		}
	}
}

// end returns the end of the elements along an axis that an execution needs; nil if it needs all of the region.
func (l *lowerer) end(n *nest, axis int) expr.Expr {
	if l.whole[n.g] {
		return nil
	}
	if axis < len(n.needed) && n.needed[axis].end != nil {
		return n.needed[axis].end
	}
	return l.limit(n.g.AxisVar(axis))
}

// bounded ends a loop after the iterations of an execution, and returns the remaining condition under which an
// iteration is needed; nil means always. Concurrent iterations all run: their condition is in the surrounding loops.
func (l *lowerer) bounded(n *nest, it *schedule.Iter, loop *ir.For) (needed expr.Expr) {
	if loop.Kind != ir.Serial && loop.Kind != ir.Parallel || loop.Range != nil {
		return nil
	}
	if end := l.bound(n, it); end != nil {
		end = expr.Simplify(expr.MinE(end, expr.I(loop.Extent)))
		loop.Range = &ir.Range{First: expr.I(0), End: end, Every: 1, Mean: float64(loop.Extent)}
		n.bounded[it] = true
	}
	for needed = l.neededOfFused(n, it); it.Parent != nil; {
		it = it.Parent.Parent
		if _, known := n.value(it); !known {
			break
		}
		needed = expr.Both(needed, l.neededOfFused(n, it))
	}
	return needed
}

// neededOfFused returns the condition under which the inner ones of fused iterators are needed.
func (l *lowerer) neededOfFused(n *nest, it *schedule.Iter) (cond expr.Expr) {
	if it.Fused == nil {
		return nil
	}
	inner := l.needed(n, it.Fused.B)
	if n.held[it.Fused] != nil {
		inner = nil
	}
	for _, c := range []expr.Expr{l.neededOfFused(n, it.Fused.A), inner, l.neededOfFused(n, it.Fused.B)} {
		cond = expr.Both(cond, c)
	}
	return cond
}

// needed returns the condition that an iteration of known number exists in an execution; nil means always.
func (l *lowerer) needed(n *nest, it *schedule.Iter) expr.Expr {
	end := l.bound(n, it)
	at, known := n.value(it)
	if end == nil || !known {
		return nil
	}
	return expr.Simplify(expr.Bin(expr.Lt, at, end))
}

// masked returns a term of a reduction that is skipped beyond the limits of axes whose loops do not end there.
func (l *lowerer) masked(n *nest, term expr.Expr, vars map[*expr.Var]expr.Expr) expr.Expr {
	if n.g.Combiner == expr.None || n.decay {
		return term
	}
	for k, v := range n.g.Reduce {
		if held := l.limit(v); held != nil && !n.ends(n.g.Iters[len(n.g.Axes)+k]) {
			term = expr.Sel(expr.Bin(expr.Lt, vars[v], held), term, n.g.Combiner.Identity(n.g.Tensor.DType))
		}
	}
	return term
}

// ends reports whether the loops of an axis end with the execution's extent.
func (n *nest) ends(it *schedule.Iter) bool {
	switch {
	case it.Split != nil:
		return n.ends(it.Split.Inner)
	case it.Fuse != nil:
		return it == it.Fuse.A && n.bounded[it.Fuse.Into]
	}
	return n.bounded[it]
}
