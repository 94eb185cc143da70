package pass

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// tensors returns the tensors with rings, sorted by name.
func (l *pipelineLoop) tensors() []*expr.Tensor {
	return slices.SortedFunc(maps.Keys(l.rings), func(a, b *expr.Tensor) int { return cmp.Compare(a.Name, b.Name) })
}

// slotBytes divides the size of a slot, so that copies to every slot have the same alignment.
const slotBytes = 16

// slotElements returns the size of a tensor's slot in elements.
func slotElements(t *expr.Tensor) int64 {
	size := t.DType.Bytes()
	return (t.Shape[0]*size + slotBytes - 1) / slotBytes * slotBytes / size
}

// place returns the slot number of a step.
func (l *pipelineLoop) place(step expr.Expr) expr.Expr {
	if l.tile != nil {
		step = expr.AddE(l.tile, step)
	}
	return expr.Simplify(expr.Bin(expr.FloorMod, step, expr.I(l.steps)))
}

// slot returns the index of an element of a step in its ring.
func (l *pipelineLoop) slot(t *expr.Tensor, step, index expr.Expr) expr.Expr {
	return expr.Linearize(expr.AddE(expr.MulE(l.place(step), expr.I(slotElements(t))), index)).Expr()
}

// begun starts the copies of a step to the given slot.
func (l *pipelineLoop) begun(step, place expr.Expr) (b ir.Block) {
	at := map[*expr.Var]expr.Expr{l.Var: step}
	move := func(e expr.Expr) expr.Expr { return expr.Simplify(expr.Substitute(e, at)) }
	if l.boxes != nil {
		var moved []*ir.Call
		for _, st := range l.boxes {
			c := ir.Rewrite(ir.Block{st}, move)[0].(*ir.Call)
			to := c.Args[0]
			c.Args[0] = ir.At(l.rings[to.Tensor], l.slot(to.Tensor, place, to.Index))
			moved = append(moved, c)
		}
		b = append(b, l.full.copied(l.place(place), moved))
	}
	if l.asynchronously() {
		b = append(b, l.asynchronous(ir.Rewrite(l.fetch, move), place)...)
	}
	return b
}

func (l *pipelineLoop) asynchronous(b ir.Block, step expr.Expr) ir.Block {
	return ir.MapEach(b, func(st ir.Stmt) ir.Stmt {
		if c, ok := (pipelineTensors{}).copied(st); ok {
			c.To, c.Index = l.rings[c.To.Tensor], l.slot(c.To.Tensor, step, c.Index)
			return c
		}
		if n, ok := st.(*ir.Store); ok { // zero, for this step
			return &ir.Store{Buffer: l.rings[n.Buffer.Tensor], Index: l.slot(n.Buffer.Tensor, step, n.Index), Value: n.Value}
		}
		return nil
	})
}

// computed returns the computation with reads from the rings.
func (l *pipelineLoop) computed() ir.Block {
	return ir.Rewrite(l.rest, func(e expr.Expr) expr.Expr {
		return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
			load, ok := x.(*expr.Load)
			if !ok || l.rings[load.Tensor] == nil {
				return x
			}
			return l.rings[load.Tensor].Tensor.At(l.slot(load.Tensor, l.Var, load.Index[0]))
		})
	})
}
