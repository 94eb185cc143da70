package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// pipelineTensors are those of the rings, in the order of their names.
func (l *pipelineLoop) tensors() []*expr.Tensor {
	var list []*expr.Tensor
	for t := range l.rings {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *expr.Tensor) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return list
}

// slotBytes is what the slots of a ring are multiples of, so that copies to each are aligned alike.
const slotBytes = 16

// slotElements is the size of a ring's slot for a buffer.
func slotElements(t *expr.Tensor) int64 {
	size := t.DType.Bytes()
	return (t.Shape[0]*size + slotBytes - 1) / slotBytes * slotBytes / size
}

// place is the place of a step in the rings.
func (l *pipelineLoop) place(step expr.Expr) expr.Expr {
	if l.tile != nil {
		step = expr.AddE(l.tile, step)
	}
	return expr.Simplify(expr.Bin(expr.FloorMod, step, expr.I(l.steps)))
}

// slot is where a step's element lies in a ring.
func (l *pipelineLoop) slot(t *expr.Tensor, step, index expr.Expr) expr.Expr {
	return expr.Linearize(expr.AddE(expr.MulE(l.place(step), expr.I(slotElements(t))), index)).Expr()
}

// begun is what begins the copies of a step, to the place of one in the rings.
func (l *pipelineLoop) begun(step, place expr.Expr) (b ir.Block) {
	at := map[*expr.Var]expr.Expr{l.Var: step}
	move := func(e expr.Expr) expr.Expr { return expr.Simplify(expr.Substitute(e, at)) }
	if l.boxes != nil {
		var moved []*ir.CopyBox
		for _, st := range l.boxes {
			c := ir.Rewrite(ir.Block{st}, move)[0].(*ir.CopyBox)
			c.Index, c.To = l.slot(c.To.Tensor, place, c.Index), l.rings[c.To.Tensor]
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
	out := make(ir.Block, len(b))
	for k, st := range b {
		switch n := st.(type) {
		case *ir.For:
			st = n.With(l.asynchronous(n.Body, step))
		case *ir.If:
			st = &ir.If{Cond: n.Cond, Then: l.asynchronous(n.Then, step), Else: l.asynchronous(n.Else, step)}
		case *ir.Copy:
			c := *n
			c.To, c.Index = l.rings[n.To.Tensor], l.slot(n.To.Tensor, step, n.Index)
			st = &ir.CopyAsync{Copy: c}
		case *ir.Store:
			t := n.Buffer.Tensor
			index := l.slot(t, step, n.Index)
			if from, valid, ok := schedule.CopyOf(n.Value); ok {
				st = &ir.CopyAsync{Copy: ir.Copy{To: l.rings[t], Index: index, From: from, Elements: 1, Valid: valid}}
			} else { // zero, for this step
				st = &ir.Store{Buffer: l.rings[t], Index: index, Value: n.Value}
			}
		}
		out[k] = st
	}
	return out
}

// computed is what reads the rings.
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
