package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// operators lists the operators that can combine lanes.
var operators = []expr.BinaryOp{expr.Add, expr.Mul, expr.Min, expr.Max}

// Across reduces each vectorized step of a reduction, x = x op term with one x for all lanes, outside of the vector
// loop: it combines the lanes of the term before it updates x. The type of x must satisfy computes.
func Across(f *ir.Func, computes func(array.DType) bool) *ir.Func {
	return mapKind(f, ir.Vector, func(n *ir.For, _ ir.Allocated) ir.Block { return lanes(n, computes) })
}

// mapKind replaces each loop of a kind by the statements that by returns.
func mapKind(f *ir.Func, kind ir.Kind, by func(n *ir.For, in ir.Allocated) ir.Block) *ir.Func {
	return ir.MapBlocks(f, func(b ir.Block, in ir.Allocated) (out ir.Block) {
		for _, st := range b {
			if n, ok := st.(*ir.For); ok && n.Kind == kind {
				out = append(out, by(n, in)...)
			} else {
				out = append(out, st)
			}
		}
		return out
	})
}

func lanes(n *ir.For, computes func(array.DType) bool) (out ir.Block) {
	var before ir.Block
	flush := func() {
		if len(before) > 0 {
			out, before = append(out, n.With(before)), nil
		}
	}
	for _, st := range n.Body {
		if s := combined(n, st, computes); s != nil {
			flush()
			out = append(out, s)
			continue
		}
		before = append(before, st)
	}
	flush()
	return out
}

// combined returns the step that combines the lanes of a vectorized one, or nil.
func combined(n *ir.For, st ir.Stmt, computes func(array.DType) bool) ir.Stmt {
	s, ok := st.(*ir.Store)
	if !ok || !computes(s.Buffer.Tensor.DType) || expr.Uses(s.Index, n.Var) {
		return nil
	}
	op, term, ok := s.Step()
	if !ok || !slices.Contains(operators, op) {
		return nil
	}
	step := *s
	step.Value = expr.Bin(op, s.Value.(*expr.Binary).A, &ir.Across{Op: op, Lane: n.Var, Value: term})
	return &step
}
