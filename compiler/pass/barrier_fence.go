package pass

import (
	"cmp"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// fences inserts a fence before each barrier after which asynchronous operations may read what threads wrote before
// it, if they read shared memory past the threads' accesses, as warpgroup products do.
func fences(b ir.Block) ir.Block {
	f := fencer{}
	ir.Visit(b, func(st ir.Stmt) {
		c, ok := st.(*ir.Call)
		for k := 0; ok && k < len(c.Params); k++ {
			if p := c.Params[k]; p.Async && p.Use == ir.Read && c.Starts.Fence != nil {
				f[c.Args[k].Tensor] = c.Starts.Fence
			}
		}
	})
	if len(f) == 0 {
		return b
	}
	out, _ := f.block(b, unfenced{})
	return out
}

// fencer maps the tensors that asynchronous operations read to the fence that they need.
type fencer map[*expr.Tensor]*ir.Instruction

// unfenced holds the fence for tensors that threads have written since the last one, and the one for tensors to which
// they have started copies; nil for none.
type unfenced struct{ written, underway *ir.Instruction }

func (u unfenced) plus(v unfenced) unfenced {
	return unfenced{cmp.Or(u.written, v.written), cmp.Or(u.underway, v.underway)}
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
		case *ir.Barrier:
			if now.written != nil {
				out, now.written = append(out, ir.Exec(now.written)), nil
			}
		default:
			if c, ok := st.(*ir.Call); ok && c.Waits != nil && c.Waits.Fence == nil {
				now.written = cmp.Or(now.written, now.underway)
			}
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
		if w == nil || f[w.Tensor] == nil {
			return
		}
		switch n := st.(type) {
		case *ir.Copy:
			if n.Starts != nil {
				u.underway = f[w.Tensor]
				return
			}
		case *ir.Call:
			if n.Starts != nil && n.Starts.Fence != nil {
				return // it writes past the threads' accesses, too
			}
		}
		u.written = f[w.Tensor]
	})
	return u
}
