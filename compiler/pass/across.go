package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// operators lists the operators that can combine lanes.
var operators = []expr.BinaryOp{expr.Add, expr.Mul, expr.Min, expr.Max}

// Across reduces each vectorized step of a reduction, x = x op term with one x for all lanes, with a single
// Combine. It adds up the lanes of the term before it updates x. The type of x must satisfy computes.
func Across(f *ir.Func, computes func(array.DType) bool) *ir.Func {
	return ir.MapBlocks(f, func(b ir.Block, _ ir.Allocated) ir.Block {
		out := slices.Clone(b)
		for k, st := range b {
			if n, ok := st.(*ir.For); ok && n.Kind == ir.Vector {
				out[k] = lanes(n, computes)
			}
		}
		return out
	})
}

func lanes(n *ir.For, computes func(array.DType) bool) *ir.For {
	body := slices.Clone(n.Body)
	for k, st := range body {
		store, ok := st.(*ir.Store)
		if !ok || !computes(store.Buffer.Tensor.DType) || expr.Uses(store.Index, n.Var) {
			continue
		}
		if op, term, ok := store.Step(); ok && slices.Contains(operators, op) {
			body[k] = &ir.Combine{Op: op, Buffer: store.Buffer, Index: store.Index, Before: store.Value.(*expr.Binary).A, Term: term}
		}
	}
	return n.With(body)
}
