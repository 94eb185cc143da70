package pass

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Spread places the buffers of launches. A buffer allocated inside a loop over threads lies in the registers of
// each thread. One allocated outside lies in shared memory, unless the schedule asks for registers. In that case it
// is distributed: each thread keeps the elements that it uses, and no other thread may use them. The error names
// the buffer that violates this.
func Spread(f *ir.Func) (*ir.Func, error) {
	body := make(ir.Block, len(f.Body))
	for k, st := range f.Body {
		if n, ok := st.(*ir.For); ok && n.Kind == ir.Blocks {
			launch, err := spreadBlock(plain(n.Body, false))
			if err != nil {
				return nil, err
			}
			st = n.With(launch)
		}
		body[k] = st
	}
	return f.With(body), nil
}

// plain substitutes the names that depend on the thread number in loops over threads.
func plain(b ir.Block, threads bool) ir.Block {
	out := make(ir.Block, 0, len(b))
	for k := 0; k < len(b); k++ {
		st := b[k]
		switch n := st.(type) {
		case *ir.Let:
			if threads && len(expr.Loads(n.Value)) == 0 {
				value := map[*expr.Var]expr.Expr{n.Var: n.Value}
				b = append(b[:k+1:k+1], ir.Rewrite(b[k+1:], func(e expr.Expr) expr.Expr { return expr.Substitute(e, value) })...)
				continue
			}
		case *ir.For:
			st = n.With(plain(n.Body, threads || n.Kind == ir.Threads))
		case *ir.If:
			st = &ir.If{Cond: n.Cond, Then: plain(n.Then, threads), Else: plain(n.Else, threads)}
		}
		out = append(out, st)
	}
	return out
}

// spreadBlock rewrites statements that all threads of a block execute uniformly.
func spreadBlock(b ir.Block) (ir.Block, error) {
	out := make(ir.Block, 0, len(b))
	for k := 0; k < len(b); k++ {
		switch n := b[k].(type) {
		case *ir.Alloc:
			if n.Buffer.Space != ir.Private {
				rest := ir.Rebind(b[k:], func(a *ir.Alloc, _ ir.Block) *ir.Buffer {
					if a != n {
						return a.Buffer
					}
					return moved(a.Buffer, ir.Shared)
				})
				out, b = append(out, rest[0]), append(b[:k:k], rest...)
				continue
			}
			own, rest, err := owned(n.Buffer, b[k+1:])
			if err != nil {
				return nil, err
			}
			out, b = append(out, &ir.Alloc{Buffer: own}), append(b[:k+1:k+1], rest...)
		case *ir.For:
			loop, err := inside(n)
			if err != nil {
				return nil, err
			}
			out = append(out, loop)
		case *ir.If:
			then, err := spreadBlock(n.Then)
			if err != nil {
				return nil, err
			}
			other, err := spreadBlock(n.Else)
			if err != nil {
				return nil, err
			}
			out = append(out, &ir.If{Cond: n.Cond, Then: then, Else: other})
		default:
			out = append(out, n)
		}
	}
	return out, nil
}

// inside rewrites a loop of a launch.
func inside(n *ir.For) (*ir.For, error) {
	if n.Kind != ir.Threads {
		body, err := spreadBlock(n.Body)
		return n.With(body), err
	}
	var err error
	body := ir.Rebind(n.Body, func(a *ir.Alloc, _ ir.Block) *ir.Buffer {
		if a.Buffer.Space == ir.Shared {
			err = fmt.Errorf("spread: buffer %s is asked for in shared memory by each thread; compute its stage outside of the loop on threads", a.Buffer.Tensor.Name)
		}
		return moved(a.Buffer, ir.Private)
	})
	return n.With(body), err
}

func moved(b *ir.Buffer, to ir.Space) *ir.Buffer {
	c := *b
	c.Space = to
	return &c
}
