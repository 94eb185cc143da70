// The barrier pass is the pass that makes the threads of a GPU's blocks wait for one another where they must. Begin
// with Run.

package pass

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Barrier puts a barrier before each loop on threads that uses what another thread may have used since the last one:
// reads what it wrote, or writes what it read or wrote. Barriers stand outside of loops on threads, where all
// threads of a block come by, so that none is in code where they part. What lies in registers is nobody else's. What
// products of warpgroups read of what threads write is fenced before the barrier.
func Barrier(f *ir.Func) *ir.Func {
	body := make(ir.Block, len(f.Body))
	for k, st := range f.Body {
		if n, ok := st.(*ir.For); ok && n.Kind == ir.Blocks {
			p := barrierPlacer{own: barrierAllocated(n.Body, ir.Private), shared: barrierAllocated(n.Body, ir.Shared)}
			launch, _ := p.block(n.Body, pending{})
			st = n.With(fences(launch))
		}
		body[k] = st
	}
	return f.With(body)
}

// pending is what was used since the last barrier, by tensor and by whom.
type pending map[barrierUse]extent

// barrierUse is of a tensor by any threads, or by the first one alone, who need not wait for itself. What is under
// way counts once it is waited for.
type barrierUse struct {
	tensor   *expr.Tensor
	alone    bool
	underway way
}

// way is that on which something is under way: a copy is nobody's to see until it is waited for, and what products
// read is nobody's to write. Boxes are there for all who wait for their phase.
type way uint8

const (
	done way = iota
	copying
	boxing
	multiplying
)

// extent is the parts of a buffer that were read and written: from the first element to the last.
type extent struct{ read, written barrierPart }

func (p pending) add(u barrierUse, e extent) {
	p[u] = extent{p[u].read.plus(e.read), p[u].written.plus(e.written)}
}

// plus is what is pending in either.
func (p pending) plus(q pending) pending {
	sum := pending{}
	for _, x := range []pending{p, q} {
		for u, e := range x {
			sum.add(u, e)
		}
	}
	return sum
}

// within reports whether all that is pending in p is so in q.
func (p pending) within(q pending) bool {
	for u, e := range p.plus(q) {
		if q[u] != e {
			return false
		}
	}
	return true
}

// conflicts reports whether what is used next must wait for what is pending.
func (p pending) conflicts(next pending) bool {
	for u, e := range next {
		if p[barrierUse{tensor: u.tensor}].conflicts(e) || !u.alone && p[barrierUse{tensor: u.tensor, alone: true}].conflicts(e) {
			return true
		}
	}
	return false
}

// underway is what a barrier leaves pending.
func (p pending) underway() pending {
	rest := pending{}
	for u, e := range p {
		if u.underway != done {
			rest[u] = e
		}
	}
	return rest
}

// landed is what is pending when what was under way on a way was waited for.
func (p pending) landed(on way) pending {
	all := pending{}
	for u, e := range p {
		if u.underway == on {
			u.underway = done
		}
		all.add(u, e)
	}
	return all
}

// arrived is what is pending when all threads have waited for the boxes that were under way.
func (p pending) arrived() pending {
	rest := pending{}
	for u, e := range p {
		if u.underway != boxing {
			rest[u] = e
		}
	}
	return rest
}

// conflicts reports whether one of two uses writes what the other uses.
func (e extent) conflicts(next extent) bool {
	return e.written.meets(next.read) || e.written.meets(next.written) || e.read.meets(next.written)
}

type barrierPlacer struct {
	// own has the tensors in registers, shared those that the block shares.
	own, shared map[*expr.Tensor]bool
}

// block rewrites what all threads do in the same way, and returns what is pending behind it.
func (p *barrierPlacer) block(b ir.Block, before pending) (ir.Block, pending) {
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
			cond := pending{}
			if p.read(cond, n.Cond, false, nil); now.conflicts(cond) {
				out, now = append(out, &ir.Barrier{}), cond.plus(now.underway())
			}
			then, afterThen := p.block(n.Then, now)
			other, afterElse := p.block(n.Else, now)
			out, now = append(out, &ir.If{Cond: n.Cond, Then: then, Else: other}), afterThen.plus(afterElse)
			continue
		}
		if now.conflicts(next) {
			out, now = append(out, &ir.Barrier{}), now.underway()
		}
		switch st.(type) {
		case *ir.Wait:
			now = now.landed(copying)
		case *ir.WaitPhase:
			now = now.arrived()
		case *ir.WaitProducts:
			now = now.landed(multiplying)
		case *ir.Barrier:
			now = now.underway()
		}
		out, now = append(out, st), now.plus(next)
	}
	return out, now
}

// loop rewrites a loop around others: what is pending at its end is so at the beginning of the next iteration.
func (p *barrierPlacer) loop(n *ir.For, before pending) (*ir.For, pending) {
	for {
		body, after := p.block(n.Body, before)
		next := p.carried(n, after)
		if n.Extent == 1 || next.within(before) {
			return n.With(body), after
		}
		before = before.plus(next)
	}
}

// carried is what is pending at the end of an iteration of a loop that the next one may have to wait for. Of tiles
// that a block walks over, none uses what another leaves in global memory.
func (p *barrierPlacer) carried(n *ir.For, after pending) pending {
	if n.Kind != ir.Walk {
		return after
	}
	kept := pending{}
	for u, e := range after {
		if p.shared[u.tensor] {
			kept[u] = e
		}
	}
	return kept
}

// barrierUses are what a statement without others, or a loop on threads, reads and writes.
func (p *barrierPlacer) uses(st ir.Stmt) pending {
	used := pending{}
	if _, ok := st.(*ir.If); ok {
		return used
	}
	loop, ok := st.(*ir.For)
	alone := ok && loop.Extent == 1
	var thread *expr.Var
	if ok && loop.Kind == ir.Threads {
		thread = loop.Var
	}
	ir.Visit(ir.Block{st}, func(st ir.Stmt) {
		switch n := st.(type) {
		case *ir.MultiplyShared:
			for _, b := range []*ir.Buffer{n.A, n.B} {
				used.add(barrierUse{tensor: b.Tensor, alone: alone, underway: multiplying}, extent{read: all})
			}
			return
		case *ir.LoadMatrices: // a thread reads for others what it names
			used.add(barrierUse{tensor: n.From.Tensor, alone: alone}, extent{read: within(n.FromIndex, n.RowElements(), nil)})
			return
		}
		direct(st, func(e expr.Expr) { p.read(used, e, alone, thread) })
		w := ir.Written(st)
		if w == nil || p.own[w.Tensor] {
			return
		}
		switch n := st.(type) {
		case *ir.Store:
			used.add(barrierUse{tensor: w.Tensor, alone: alone}, extent{written: within(n.Index, 1, thread)})
		case *ir.Copy:
			used.add(barrierUse{tensor: w.Tensor, alone: alone}, extent{written: within(n.Index, n.Elements, thread)})
		case *ir.CopyAsync:
			used.add(barrierUse{tensor: w.Tensor, alone: alone, underway: copying}, extent{written: within(n.Index, n.Elements, thread)})
		case *ir.CopyBox:
			used.add(barrierUse{tensor: w.Tensor, alone: alone, underway: boxing}, extent{written: all})
		default:
			used.add(barrierUse{tensor: w.Tensor, alone: alone}, extent{written: all})
		}
	})
	return used
}

// direct calls f on the expressions of a statement itself, without those of statements in it.
func direct(st ir.Stmt, f func(expr.Expr)) {
	switch n := st.(type) {
	case *ir.For:
	case *ir.If:
		f(n.Cond)
	default:
		ir.VisitExprs(ir.Block{st}, f)
	}
}

// read adds what an expression reads, in a loop over thread or, where that is nil, by all threads.
func (p *barrierPlacer) read(used pending, e expr.Expr, alone bool, thread *expr.Var) {
	for _, l := range expr.Loads(e) {
		if !p.own[l.Tensor] {
			used.add(barrierUse{tensor: l.Tensor, alone: alone}, extent{read: within(l.Index[0], 1, thread)})
		}
	}
}

// barrierAllocated are the tensors that a block allocates in a memory.
func barrierAllocated(b ir.Block, in ir.Space) map[*expr.Tensor]bool {
	all := map[*expr.Tensor]bool{}
	ir.Visit(b, func(st ir.Stmt) {
		if a, ok := st.(*ir.Alloc); ok && a.Buffer.Space == in {
			all[a.Buffer.Tensor] = true
		}
	})
	return all
}
