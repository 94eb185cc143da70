package pass

import (
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

// copied is a vector whose lanes are copied from memory to memory.
type copied struct {
	load, store expr.Linear // of the first lane
	// step is the stride between the source elements of the lanes.
	step  int64
	from  *expr.Tensor
	to    *ir.Buffer
	lanes int64
}

// square returns the transposition of the square that the copies at the start of a block form, or nil.
func square(b ir.Block, in ir.Allocated) *ir.Call {
	var first copied
	var args []ir.Arg
	for k, st := range b {
		c, ok := copiedBy(st, in)
		if !ok || c.step < 2 || c.lanes < 2 || c.lanes > maxLanes {
			return nil
		}
		if k == 0 {
			first, args = c, []ir.Arg{{Tensor: c.from, Index: c.load.Expr(), Stride: c.step}}
		}
		next := c.load.Plus(first.load, -1)
		if c.from != first.from || c.to.Tensor != first.to.Tensor || c.lanes != first.lanes || c.step != first.step || len(next.Terms) > 0 || next.Const != int64(k) {
			return nil
		}
		if args = append(args, ir.At(c.to, c.store.Expr())); int64(k+1) == first.lanes {
			return ir.Exec(machine.Transpose(c.from.DType, k+1), args...)
		}
	}
	return nil
}

func copiedBy(st ir.Stmt, in ir.Allocated) (c copied, ok bool) {
	n, ok := st.(*ir.For)
	if !ok || n.Kind != ir.Vector || len(n.Body) != 1 {
		return c, false
	}
	s, ok := n.Body[0].(*ir.Store)
	if !ok {
		return c, false
	}
	l, ok := s.Value.(*expr.Load)
	if !ok || l.Tensor == s.Buffer.Tensor || in.InRegisters(l.Tensor) || s.Buffer.Space == ir.Register {
		return c, false
	}
	lane := expr.Linearize(n.Var)
	from, to := expr.Linearize(l.Index[0]), expr.Linearize(s.Index)
	step, linear := from.Coef(n.Var)
	one, linearStore := to.Coef(n.Var)
	c = copied{from.Plus(lane, -step), to.Plus(lane, -1), step, l.Tensor, s.Buffer, n.Extent}
	return c, linear && linearStore && one == 1
}
