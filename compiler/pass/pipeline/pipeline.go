package pipeline

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Run gives each loop in which shared buffers are to be filled ahead a ring of them. Copies of the first steps are
// begun before the loop; each step waits for its own copies, begins those of a later step, and computes meanwhile.
// Where a buffer is filled by anything but copies, or outside of a loop, nothing is done ahead.
func Run(f *ir.Func) *ir.Func {
	inside := near{tensors: map[*expr.Tensor]bool{}}
	for _, st := range f.Body {
		if n, ok := st.(*ir.For); ok {
			ir.Visit(n.Body, func(st ir.Stmt) {
				if a, ok := st.(*ir.Alloc); ok {
					inside.tensors[a.Buffer.Tensor] = true
				}
			})
		}
	}
	return f.With(inside.block(f.Body))
}

// near has the tensors that are allocated in launches, from which nothing is copied, and whether a block walks over
// what is looked at.
type near struct {
	tensors map[*expr.Tensor]bool
	walks   bool
}

func (inside near) block(b ir.Block) ir.Block {
	var out ir.Block
	for _, st := range b {
		switch n := st.(type) {
		case *ir.For:
			if n.Kind == ir.Serial {
				if piped, ok := inside.newLoop(n); ok {
					out = append(out, piped.run()...)
					continue
				}
			}
			if w, ok := inside.newWalk(n); ok {
				out = append(out, w.run()...)
				continue
			}
			body := near{inside.tensors, inside.walks || n.Kind == ir.Walk && n.Extent > 1}
			st = n.With(body.block(n.Body))
		case *ir.If:
			st = &ir.If{Cond: n.Cond, Then: inside.block(n.Then), Else: inside.block(n.Else)}
		}
		out = append(out, st)
	}
	return out
}

// loop is one whose buffers are filled ahead.
type loop struct {
	*ir.For
	steps int64
	// walks is set where the loop is one of several tiles, which use the same rings. Where the steps of a tile follow
	// those of the one before in them, tile is the place of its first one.
	walks bool
	tile  *expr.Var
	// products is set where a warpgroup's instructions read the buffers while their threads go on.
	products bool
	// rings are in place of the buffers that a step has.
	rings map[*expr.Tensor]*ir.Buffer
	// fetch is what begins a step's copies, rest what computes it.
	fetch, rest ir.Block
}

// newLoop takes a loop apart; ok is false when nothing in it is filled ahead.
func (inside near) newLoop(n *ir.For) (l *loop, ok bool) {
	l = &loop{For: n, walks: inside.walks, rings: map[*expr.Tensor]*ir.Buffer{}}
	body := n.Body
	for k := 0; k < len(body); k++ {
		switch st := body[k].(type) {
		case *ir.Let: // so that copies for other steps have a value of their own
			value := map[*expr.Var]expr.Expr{st.Var: st.Value}
			body = append(body[:k+1:k+1], ir.Rewrite(body[k+1:], func(e expr.Expr) expr.Expr { return expr.Substitute(e, value) })...)
			continue
		case *ir.Alloc:
			if st.Buffer.Steps > 0 {
				l.steps = max(l.steps, st.Buffer.Steps)
				l.rings[st.Buffer.Tensor] = st.Buffer
				continue
			}
		}
		if l.fills(body[k]) {
			l.fetch = append(l.fetch, body[k])
		} else {
			l.rest = append(l.rest, body[k])
		}
	}
	if len(l.rings) == 0 || n.Extent < 2 || !inside.copied(l.fetch) || l.fillsMore(l.rest) {
		return nil, false
	}
	l.steps = min(l.steps, n.Extent)
	l.products = multiplies(l.rest)
	for t, b := range l.rings {
		ring := *b
		ring.Tensor, ring.Steps = ir.Flat(t.Name, t.DType, l.steps*slotElements(t)), 0
		l.rings[t] = &ring
	}
	return l, true
}

// fills reports whether a statement writes to buffers that are filled ahead, and to nothing else.
func (l *loop) fills(st ir.Stmt) bool {
	found, others := false, false
	ir.Visit(ir.Block{st}, func(st ir.Stmt) {
		if b := ir.Written(st); b != nil {
			_, ahead := l.rings[b.Tensor]
			found, others = found || ahead, others || !ahead
		}
	})
	return found && !others
}

// fillsMore reports whether statements write to such buffers.
func (l *loop) fillsMore(b ir.Block) (found bool) {
	ir.Visit(b, func(st ir.Stmt) {
		if w := ir.Written(st); w != nil {
			_, ahead := l.rings[w.Tensor]
			found = found || ahead
		}
	})
	return found
}

// leastBytes is the least that an asynchronous copy copies.
const leastBytes = 4

// copied reports whether all that statements store are copies from global memory that can be asynchronous.
func (inside near) copied(b ir.Block) bool {
	all := true
	ir.Visit(b, func(st ir.Stmt) {
		switch n := st.(type) {
		case *ir.For, *ir.If, *ir.Let:
		case *ir.Store:
			from, _, ok := schedule.CopyOf(n.Value)
			all = all && ok && !inside.tensors[from.Tensor] && from.Tensor.DType.Bytes() >= leastBytes
		case *ir.Copy:
			all = all && !inside.tensors[n.From.Tensor] && n.Elements*n.From.Tensor.DType.Bytes() >= leastBytes
		default:
			all = false
		}
	})
	return all
}

// multiplies reports whether all that statements compute are sums of products for a warpgroup's instructions, in one
// group for each step.
func multiplies(b ir.Block) bool {
	loops, matrices := 0, 0
	ir.Visit(b, func(st ir.Stmt) {
		if n, ok := st.(*ir.For); ok && n.Kind == ir.Threads {
			loops++
		} else if ok && n.Kind == ir.Matrices && n.Format.Warpgroup() {
			matrices++
		}
	})
	return loops == 1 && matrices == 1
}

// ahead is how many steps copies are begun before those that compute: all, where there is room for them. Where
// products of the step before are still under way, so is what they read.
func (l *loop) ahead() int64 {
	switch {
	case !l.reused():
		return l.steps
	case l.products && l.steps > 2:
		return l.steps - 2
	}
	return l.steps - 1
}

// reused reports whether later steps are copied to where earlier ones were.
func (l *loop) reused() bool { return l.steps < l.Extent || l.tile != nil }

// run is the loop with what is before it.
func (l *loop) run() ir.Block {
	out := l.allocs()
	if l.walks && l.threads() > 1 {
		out = append(out, &ir.Barrier{}) // behind which nobody reads what the tile before has left in the rings
	}
	for k := range l.ahead() {
		out = append(append(out, l.ready(l.first(k))...), &ir.Commit{})
	}
	var next ir.Block
	later := expr.AddE(l.Var, expr.I(l.ahead()))
	if l.reused() {
		next = ir.Block{&ir.If{Cond: expr.Simplify(expr.Bin(expr.Lt, later, l.end())), Then: l.begun(later, later)}}
	}
	return append(out, l.stepping(next))
}

// allocs are those of the rings.
func (l *loop) allocs() (out ir.Block) {
	for _, t := range l.tensors() {
		out = append(out, &ir.Alloc{Buffer: l.rings[t]})
	}
	return out
}

// stepping is the loop, whose steps begin the copies of a later one as next says.
func (l *loop) stepping(next ir.Block) *ir.For {
	body := ir.Block{&ir.Wait{Groups: l.ahead() - 1}}
	if l.products && l.reused() {
		body = append(body, &ir.WaitProducts{Groups: l.steps - 1 - l.ahead()})
	}
	if l.threads() > 1 {
		// One barrier does for two things: what others have copied is there, and what is copied next is not read any
		// more.
		body = append(body, &ir.Barrier{})
	}
	body = append(append(body, next...), &ir.Commit{})
	return l.With(append(body, l.computed()...))
}

// first is the step that comes as number k.
func (l *loop) first(k int64) expr.Expr {
	if l.Range == nil {
		return expr.I(k)
	}
	return expr.AddE(l.Range.First, expr.I(k))
}

// end is that behind the last step.
func (l *loop) end() expr.Expr {
	if l.Range == nil {
		return expr.I(l.Extent)
	}
	return l.Range.End
}

// ready begins the copies of a step before the loop, if there is one.
func (l *loop) ready(step expr.Expr) ir.Block {
	if l.Range == nil {
		return l.begun(step, step)
	}
	return ir.Block{&ir.If{Cond: expr.Simplify(expr.Bin(expr.Lt, step, l.end())), Then: l.begun(step, step)}}
}

// threads is how many threads copy or compute.
func (l *loop) threads() int64 {
	most := int64(1)
	ir.Visit(l.Body, func(st ir.Stmt) {
		if n, ok := st.(*ir.For); ok && n.Kind == ir.Threads {
			most = max(most, n.Extent)
		}
	})
	return most
}

// tensors are those of the rings, in the order of their names.
func (l *loop) tensors() []*expr.Tensor {
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

// slot is where a step's element lies in a ring.
func (l *loop) slot(t *expr.Tensor, step, index expr.Expr) expr.Expr {
	if l.tile != nil {
		step = expr.AddE(l.tile, step)
	}
	place := expr.Simplify(expr.Bin(expr.FloorMod, step, expr.I(l.steps)))
	return expr.Linearize(expr.AddE(expr.MulE(place, expr.I(slotElements(t))), index)).Expr()
}

// begun is what begins the copies of a step, to the place of one in the rings.
func (l *loop) begun(step, place expr.Expr) ir.Block {
	at := map[*expr.Var]expr.Expr{l.Var: step}
	moved := ir.Rewrite(l.fetch, func(e expr.Expr) expr.Expr { return expr.Simplify(expr.Substitute(e, at)) })
	return l.asynchronous(moved, place)
}

func (l *loop) asynchronous(b ir.Block, step expr.Expr) ir.Block {
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
func (l *loop) computed() ir.Block {
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
