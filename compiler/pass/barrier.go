package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Barrier inserts a barrier before each loop over threads that conflicts with earlier accesses of other threads: it
// reads what they wrote, or writes what they read or wrote. Barriers stand outside loops over threads, where
// control flow is uniform across the block. Registers are private to a thread and need no barrier. Memory that
// threads write and warpgroup products read is fenced before the barrier.
func Barrier(f *ir.Func) *ir.Func {
	return ir.MapLaunches(f, func(b ir.Block) ir.Block {
		p := barrierPlacer{own: allocated(b, ir.Private), shared: allocated(b, ir.Shared)}
		launch, _ := p.block(b, pending{})
		return fences(launch)
	})
}

// pending holds the accesses since the last barrier, by tensor and kind of access.
type pending map[barrierUse]extent

// barrierUse identifies the accesses to a tensor by all threads, or by the first thread alone, which need not wait
// for itself. An asynchronous access, which belongs to operations under way, counts once it has been waited for.
type barrierUse struct {
	tensor   *expr.Tensor
	alone    bool
	underway *ir.Async
}

// extent holds the ranges of a buffer that were read and written, from the first element to the last.
type extent struct{ read, written barrierPart }

func (p pending) add(u barrierUse, e extent) {
	p[u] = extent{p[u].read.plus(e.read), p[u].written.plus(e.written)}
}

// plus returns the union of p and q.
func (p pending) plus(q pending) pending {
	sum := pending{}
	for _, x := range []pending{p, q} {
		for u, e := range x {
			sum.add(u, e)
		}
	}
	return sum
}

// within reports whether q covers every access of p.
func (p pending) within(q pending) bool {
	for u, e := range p.plus(q) {
		if q[u] != e {
			return false
		}
	}
	return true
}

// conflicts reports whether the accesses in next must wait for those in p.
func (p pending) conflicts(next pending) bool {
	for u, e := range next {
		if p[barrierUse{tensor: u.tensor}].conflicts(e) || !u.alone && p[barrierUse{tensor: u.tensor, alone: true}].conflicts(e) {
			return true
		}
	}
	return false
}

// without returns the accesses except for those of the given operations; nil means those that are over.
func (p pending) without(on *ir.Async) pending {
	rest := pending{}
	for u, e := range p {
		if u.underway != on {
			rest[u] = e
		}
	}
	return rest
}

// underway returns the accesses that a barrier leaves pending.
func (p pending) underway() pending { return p.without(nil) }

// landed returns the accesses that are pending after a wait for the given operations.
func (p pending) landed(on *ir.Async) pending {
	if on.Published {
		return p.without(on)
	}
	all := pending{}
	for u, e := range p {
		if u.underway == on {
			u.underway = nil
		}
		all.add(u, e)
	}
	return all
}

// conflicts reports whether one of the two accesses writes what the other one uses.
func (e extent) conflicts(next extent) bool {
	return e.written.meets(next.read) || e.written.meets(next.written) || e.read.meets(next.written)
}

type barrierPlacer struct {
	// own holds the tensors in registers, shared those in shared memory.
	own, shared map[*expr.Tensor]bool
}

// block rewrites statements that all threads execute uniformly, and returns the accesses pending after them.
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
		switch n := st.(type) {
		case *ir.Call:
			if n.Waits != nil {
				now = now.landed(n.Waits)
			}
		case *ir.Barrier:
			now = now.underway()
		}
		out, now = append(out, st), now.plus(next)
	}
	return out, now
}

// loop rewrites a loop that contains others. Accesses pending at its end are pending at the start of the next
// iteration.
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

// carried returns the accesses at the end of an iteration that the next one may conflict with. In a loop over the
// tiles of a persistent block, no tile uses global memory that another tile wrote.
func (p *barrierPlacer) carried(n *ir.For, after pending) pending {
	if n.Kind != ir.Persistent {
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

// uses returns the accesses of a statement without nested statements, or of a loop over threads.
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
		if c, ok := st.(*ir.Call); ok {
			p.operands(used, c, alone, thread)
			return
		}
		switch read := func(e expr.Expr) { p.read(used, e, alone, thread) }; n := st.(type) {
		case *ir.For: // nested statements are visited
		case *ir.If:
			read(n.Cond)
		default:
			ir.VisitExprs(ir.Block{st}, read)
		}
		w := ir.Written(st)
		if w == nil || p.own[w.Tensor] {
			return
		}
		switch n := st.(type) {
		case *ir.Store:
			used.add(barrierUse{tensor: w.Tensor, alone: alone}, extent{written: within(n.Index, 1, thread)})
		case *ir.Copy:
			used.add(barrierUse{tensor: w.Tensor, alone: alone, underway: n.Starts}, extent{written: within(n.Index, n.Elements, thread)})
		default:
			used.add(barrierUse{tensor: w.Tensor, alone: alone}, extent{written: all})
		}
	})
	return used
}

// operands records the accesses of an instruction. Threads of a group pass on what they address.
func (p *barrierPlacer) operands(used pending, c *ir.Call, alone bool, thread *expr.Var) {
	if c.By == ir.ByGroup {
		thread = nil
	}
	for k, param := range c.Params {
		a, u, part := c.Args[k], barrierUse{alone: alone}, all
		p.read(used, a.Index, alone, thread)
		if u.tensor = a.Tensor; param.Use == ir.Value || param.Use == ir.Ordered || p.own[a.Tensor] {
			continue
		}
		if param.Async {
			u.underway = c.Starts
		}
		if param.Bytes > 0 {
			part = within(a.Index, param.Bytes/a.Tensor.DType.Bytes(), thread)
		}
		if param.Use != ir.Write {
			used.add(u, extent{read: part})
		}
		if param.Use != ir.Read {
			used.add(u, extent{written: part})
		}
	}
}

// read records the loads of an expression inside a loop over thread; thread is nil where all threads execute it.
func (p *barrierPlacer) read(used pending, e expr.Expr, alone bool, thread *expr.Var) {
	for _, l := range expr.Loads(e) {
		if !p.own[l.Tensor] {
			used.add(barrierUse{tensor: l.Tensor, alone: alone}, extent{read: within(l.Index[0], 1, thread)})
		}
	}
}

// allocated returns the tensors that a block allocates in one of the given memory spaces; without any, in all.
func allocated(b ir.Block, in ...ir.Space) map[*expr.Tensor]bool {
	all := map[*expr.Tensor]bool{}
	ir.Visit(b, func(st ir.Stmt) {
		if a, ok := st.(*ir.Alloc); ok && (len(in) == 0 || slices.Contains(in, a.Buffer.Space)) {
			all[a.Buffer.Tensor] = true
		}
	})
	return all
}
