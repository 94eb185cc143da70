package barrier

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Run puts a barrier before each loop on threads that uses what another thread may have used since the last one: reads
// what it wrote, or writes what it read or wrote. Barriers stand outside of loops on threads, where all threads of a
// block come by, so that none is in code where they part. What lies in registers is nobody else's.
func Run(f *ir.Func) *ir.Func {
	body := make(ir.Block, len(f.Body))
	for k, st := range f.Body {
		if n, ok := st.(*ir.For); ok && n.Kind == ir.Blocks {
			p := placer{own: private(n.Body)}
			launch, _ := p.block(n.Body, pending{})
			st = n.With(launch)
		}
		body[k] = st
	}
	return f.With(body)
}

// pending is what was used since the last barrier, by tensor: whether it was written.
type pending map[*expr.Tensor]bool

// plus is what is pending in either.
func (p pending) plus(q pending) pending {
	sum := pending{}
	for _, x := range []pending{p, q} {
		for t, written := range x {
			sum[t] = sum[t] || written
		}
	}
	return sum
}

// within reports whether all that is pending in p is so in q.
func (p pending) within(q pending) bool {
	for t, written := range p {
		if w, ok := q[t]; !ok || written && !w {
			return false
		}
	}
	return true
}

// conflicts reports whether what is used next must wait for what is pending.
func (p pending) conflicts(next pending) bool {
	for t, written := range next {
		if before, used := p[t]; used && (before || written) {
			return true
		}
	}
	return false
}

type placer struct {
	// own has the tensors in registers.
	own map[*expr.Tensor]bool
}

// block rewrites what all threads do in the same way, and returns what is pending behind it.
func (p *placer) block(b ir.Block, before pending) (ir.Block, pending) {
	var out ir.Block
	now := before
	for _, st := range b {
		next := p.uses(st)
		switch n := st.(type) {
		case *ir.For:
			if n.Kind == ir.Threads {
				break
			}
			var loop *ir.For
			loop, now = p.loop(n, now)
			out = append(out, loop)
			continue
		case *ir.If:
			if cond := p.read(n.Cond); now.conflicts(cond) {
				out, now = append(out, &ir.Barrier{}), cond
			}
			then, afterThen := p.block(n.Then, now)
			other, afterElse := p.block(n.Else, now)
			out, now = append(out, &ir.If{Cond: n.Cond, Then: then, Else: other}), afterThen.plus(afterElse)
			continue
		}
		if now.conflicts(next) {
			out, now = append(out, &ir.Barrier{}), pending{}
		}
		out, now = append(out, st), now.plus(next)
	}
	return out, now
}

// loop rewrites a loop around others: what is pending at its end is so at the beginning of the next iteration.
func (p *placer) loop(n *ir.For, before pending) (*ir.For, pending) {
	for {
		body, after := p.block(n.Body, before)
		if n.Extent == 1 || after.within(before) {
			return n.With(body), after
		}
		before = before.plus(after)
	}
}

// uses are what a statement without others, or a loop on threads, reads and writes.
func (p *placer) uses(st ir.Stmt) pending {
	used := pending{}
	if _, ok := st.(*ir.If); ok {
		return used
	}
	b := ir.Block{st}
	ir.VisitExprs(b, func(e expr.Expr) {
		for t := range p.read(e) {
			used[t] = used[t] || false
		}
	})
	ir.Visit(b, func(st ir.Stmt) {
		if w := ir.Written(st); w != nil && !p.own[w.Tensor] {
			used[w.Tensor] = true
		}
	})
	return used
}

func (p *placer) read(e expr.Expr) pending {
	used := pending{}
	for _, l := range expr.Loads(e) {
		if !p.own[l.Tensor] {
			used[l.Tensor] = false
		}
	}
	return used
}

// private are the tensors that lie in registers.
func private(b ir.Block) map[*expr.Tensor]bool {
	own := map[*expr.Tensor]bool{}
	ir.Visit(b, func(st ir.Stmt) {
		if a, ok := st.(*ir.Alloc); ok && a.Buffer.Space == ir.Private {
			own[a.Buffer.Tensor] = true
		}
	})
	return own
}
