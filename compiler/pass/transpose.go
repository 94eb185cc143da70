package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine"
)

// maxLanes limits the lanes of a square: compilers take seconds for shuffles of long vectors of bytes.
const maxLanes = 16

// Transpose finds squares of elements that are copied with rows and columns exchanged, and transposes them in
// registers. It merges vector copies from memory to memory that gather their lanes, each from the neighbours of the
// previous copy's elements, as many copies as a vector has lanes.
func Transpose(f *ir.Func) *ir.Func {
	return ir.MapBlocks(f, func(b ir.Block, in ir.Allocated) ir.Block {
		var out ir.Block
		for k := 0; k < len(b); {
			if t := square(b[k:], in); t != nil {
				out = append(out, t)
				k += len(t.Args) - 1
				continue
			}
			out = append(out, b[k])
			k++
		}
		return out
	})
}

// square returns the transposition of the square that the copies at the start of a block form, or nil.
func square(b ir.Block, in ir.Allocated) *ir.Call {
	n, ok := ir.PerfectNestOf(b[0])
	if !ok || len(n.Loops) != 1 || n.Loops[0].Kind != ir.Vector {
		return nil
	}
	lanes := int(n.Loops[0].Extent)
	l, ok := n.Store.Value.(*expr.Load)
	if !ok || lanes < 2 || lanes > min(maxLanes, len(b)) || in.InRegisters(l.Tensor) {
		return nil
	}
	if apart, _ := expr.Linearize(l.Index[0]).Coef(n.Loops[0].Var); apart < 2 {
		return nil
	}
	transpose := machine.Transpose(l.DType(), lanes)
	args, err := Tensorized(b[:lanes], transpose, in)
	if err != nil || slices.ContainsFunc(args, func(a ir.Arg) bool { return a.Buffer != nil && a.Buffer.Space == ir.Register }) {
		return nil
	}
	return ir.Exec(transpose, args...)
}
