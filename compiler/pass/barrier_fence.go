package pass

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// fences inserts a fence before each barrier after which warpgroup products may read what threads wrote before it.
// Warpgroup products read shared memory through the asynchronous proxy.
func fences(b ir.Block) ir.Block {
	f := fencer{}
	ir.Visit(b, func(st ir.Stmt) {
		if n, ok := st.(*ir.MultiplyShared); ok {
			f[n.A.Tensor], f[n.B.Tensor] = true, true
		}
	})
	if len(f) == 0 {
		return b
	}
	out, _ := f.block(b, unfenced{})
	return out
}

// fencer holds the tensors that warpgroup products read.
type fencer map[*expr.Tensor]bool

// unfenced records whether threads have written such tensors, or have started copies to them, since the last fence.
type unfenced struct{ written, underway bool }

func (u unfenced) plus(v unfenced) unfenced {
	return unfenced{u.written || v.written, u.underway || v.underway}
}

func (f fencer) block(b ir.Block, now unfenced) (ir.Block, unfenced) {
	var out ir.Block
	for _, st := range b {
		switch n := st.(type) {
		case *ir.For:
			if n.Kind == ir.Threads {
				now = now.plus(f.writes(n.Body))
				break
			}
			st, now = f.loop(n, now)
		case *ir.If:
			then, afterThen := f.block(n.Then, now)
			other, afterElse := f.block(n.Else, now)
			st, now = &ir.If{Cond: n.Cond, Then: then, Else: other}, afterThen.plus(afterElse)
		case *ir.Wait:
			now = unfenced{now.written || now.underway, now.underway}
		case *ir.Barrier:
			if now.written {
				out, now.written = append(out, &ir.FenceAsync{}), false
			}
		default:
			now = now.plus(f.writes(ir.Block{st}))
		}
		out = append(out, st)
	}
	return out, now
}

// loop rewrites a loop that contains others. Writes at its end reach the start of the next iteration.
func (f fencer) loop(n *ir.For, before unfenced) (*ir.For, unfenced) {
	for {
		body, after := f.block(n.Body, before)
		if n.Extent == 1 || before.plus(after) == before {
			return n.With(body), after
		}
		before = before.plus(after)
	}
}

// writes returns the writes and copies that statements make.
func (f fencer) writes(b ir.Block) (u unfenced) {
	ir.Visit(b, func(st ir.Stmt) {
		w := ir.Written(st)
		if w == nil || !f[w.Tensor] {
			return
		}
		switch st.(type) {
		case *ir.TMACopy: // goes through the asynchronous proxy, too
		case *ir.CopyAsync:
			u.underway = true
		default:
			u.written = true
		}
	})
	return u
}
