package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Borders skips the padding that unrolled sums of open images still test: a condition on a position is tested once for
// all its terms. Like Padding, it assumes that constants are finite.
func Borders(f *ir.Func) *ir.Func {
	if !f.Workload.IsOpen() {
		return f
	}
	p := newPadding(f)
	return f.With(ir.MapEach(f.Body, p.border))
}

// border moves the loops over positions outside those over terms; nil if a nest has another form.
func (p *padding) border(n *ir.For) ir.Stmt {
	if n.Kind != ir.Unrolled {
		return nil
	}
	nest, ok := ir.PerfectNestOf(n)
	if !ok || nest.Guard != nil {
		return nil
	}
	loops, step := nest.Loops, nest.Store
	cond, then := p.inside(step)
	if cond == nil {
		return nil
	}
	inCond := func(x *ir.For) bool { return expr.Uses(cond, x.Var) }
	isTerm := func(x *ir.For) bool { return !expr.Uses(step.Index, x.Var) }
	terms := slices.DeleteFunc(slices.Clone(loops), inCond)
	positions := slices.DeleteFunc(slices.Clone(loops), func(x *ir.For) bool { return !inCond(x) })
	if slices.ContainsFunc(positions, func(x *ir.For) bool { return x.Kind != ir.Unrolled || isTerm(x) }) || !slices.ContainsFunc(terms, isTerm) {
		return nil
	}
	return ir.Around(positions, ir.Block{&ir.If{Cond: cond, Then: ir.Around(terms, ir.Block{then})}})[0]
}

// inside returns the condition under which a step of a sum adds more than padding, and the step where it holds.
func (p *padding) inside(step *ir.Store) (cond expr.Expr, then *ir.Store) {
	sum, ok := step.Value.(*expr.Binary)
	if !ok || sum.Op != expr.Add {
		return nil, nil
	}
	count := 0
	with := func(holds bool) *ir.Store {
		s := *sum // which may be fused
		s.B = expr.Rewrite(sum.B, func(x expr.Expr) expr.Expr {
			choice, ok := x.(*expr.Select)
			switch {
			case !ok:
				return x
			case holds:
				count, cond = count+1, choice.Cond
				return choice.A
			}
			return choice.B
		})
		return &ir.Store{Buffer: step.Buffer, Index: step.Index, Value: &s}
	}
	if then = with(true); count != 1 || len(expr.Loads(cond)) > 0 || !p.addsNothing(with(false)) {
		return nil, nil
	}
	return cond, then
}
