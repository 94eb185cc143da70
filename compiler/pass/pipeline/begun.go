package pipeline

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// leastAsync is the least that an asynchronous copy copies, in bytes.
const leastAsync = 4

// Begin has threads begin all copies of a step that is fetched when it is needed, and wait for them together: a copy
// that is waited for alone takes the way to global memory and back. Launches that fetch ahead stay as they are, since
// they count what is under way.
func Begin(f *ir.Func) *ir.Func {
	body := make(ir.Block, len(f.Body))
	for k, st := range f.Body {
		if n, ok := st.(*ir.For); ok && n.Kind == ir.Blocks && !ahead(n.Body) {
			st = n.With(within(n.Body).begun(n.Body))
		}
		body[k] = st
	}
	return f.With(body)
}

// own has the tensors that a launch allocates, in shared memory and in registers.
type own map[*expr.Tensor]bool

func within(b ir.Block) own {
	o := own{}
	ir.Visit(b, func(st ir.Stmt) {
		if a, ok := st.(*ir.Alloc); ok {
			o[a.Buffer.Tensor] = true
		}
	})
	return o
}

// ahead reports whether anything is copied asynchronously.
func ahead(b ir.Block) (found bool) {
	ir.Visit(b, func(st ir.Stmt) {
		switch st.(type) {
		case *ir.CopyAsync, *ir.CopyBox:
			found = true
		}
	})
	return found
}

// begun is a block in which runs of statements that only copy begin their copies, and are followed by a wait.
func (o own) begun(b ir.Block) (out ir.Block) {
	open := false
	wait := func() {
		if open {
			out, open = append(out, &ir.Commit{}, &ir.Wait{}), false
		}
	}
	for _, st := range b {
		fills, copies := o.copies(st)
		if _, allocates := st.(*ir.Alloc); !fills && !allocates {
			wait()
		}
		switch n := st.(type) {
		case *ir.For:
			if copies {
				st, open = n.With(o.asynchronous(n.Body)), true
			} else if n.Kind != ir.Threads {
				st = n.With(o.begun(n.Body))
			}
		case *ir.If:
			st = &ir.If{Cond: n.Cond, Then: o.begun(n.Then), Else: o.begun(n.Else)}
		}
		out = append(out, st)
	}
	wait()
	return out
}

// copies reports whether a loop on threads, or one around such, does nothing but fill shared memory, and whether some
// of it can be copied asynchronously.
func (o own) copies(st ir.Stmt) (fills, asynchronously bool) {
	n, ok := st.(*ir.For)
	if !ok || n.Kind == ir.Walk || n.Range != nil {
		return false, false
	}
	threads, found, others := n.Kind == ir.Threads, false, false
	ir.Visit(n.Body, func(st ir.Stmt) {
		switch x := st.(type) {
		case *ir.For:
			threads, others = threads || x.Kind == ir.Threads, others || x.Range != nil
		case *ir.If:
		case *ir.Copy, *ir.Store:
			_, copied := o.copied(st)
			found, others = found || copied, others || !copied && !o.fills(st)
		default:
			others = true
		}
	})
	fills = threads && !others
	return fills, fills && found
}

// copied is the asynchronous copy in place of a statement; ok is false where there is none.
func (o own) copied(st ir.Stmt) (c *ir.CopyAsync, ok bool) {
	switch n := st.(type) {
	case *ir.Copy:
		c = &ir.CopyAsync{Copy: *n}
	case *ir.Store:
		from, valid, isCopy := schedule.CopyOf(n.Value)
		if !isCopy || n.Buffer.Space != ir.Shared || o[from.Tensor] || from.DType() != n.Buffer.Tensor.DType {
			return nil, false
		}
		c = &ir.CopyAsync{Copy: ir.Copy{To: n.Buffer, Index: n.Index, From: from, Elements: 1, Valid: valid}}
	default:
		return nil, false
	}
	return c, c.Elements*c.To.Tensor.DType.Bytes() >= leastAsync
}

// fills reports whether a statement writes to shared memory what does not come from there, nor from registers.
func (o own) fills(st ir.Stmt) bool {
	switch n := st.(type) {
	case *ir.Copy:
		return true
	case *ir.Store:
		return n.Buffer.Space == ir.Shared && !slices.ContainsFunc(expr.Loads(n.Value), func(l *expr.Load) bool { return o[l.Tensor] })
	}
	return false
}

func (o own) asynchronous(b ir.Block) ir.Block {
	out := make(ir.Block, len(b))
	for k, st := range b {
		switch n := st.(type) {
		case *ir.For:
			st = n.With(o.asynchronous(n.Body))
		case *ir.If:
			st = &ir.If{Cond: n.Cond, Then: o.asynchronous(n.Then), Else: o.asynchronous(n.Else)}
		default:
			if c, ok := o.copied(st); ok {
				st = c
			}
		}
		out[k] = st
	}
	return out
}
