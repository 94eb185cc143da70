package pass

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// pipelineAhead is how many steps copies are begun before those that compute: all, where there is room for them. Where
// products of the step before are still under way, so is what they read.
func (l *pipelineLoop) ahead() int64 {
	switch {
	case !l.reused():
		return l.steps
	case l.products && l.steps > 2:
		return l.steps - 2
	}
	return l.steps - 1
}

// reused reports whether later steps are copied to where earlier ones were.
func (l *pipelineLoop) reused() bool { return l.steps < l.Extent || l.tile != nil }

// run is the loop with what is before it, and behind it.
func (l *pipelineLoop) run() ir.Block {
	out := l.begin()
	if l.boxes == nil && l.walks && l.threads() > 1 {
		out = append(out, &ir.Barrier{}) // behind which nobody reads what the tile before has left in the rings
	}
	for k := range l.ahead() {
		out = append(append(out, l.ready(l.first(k))...), l.closed()...)
	}
	var next ir.Block
	later := expr.AddE(l.Var, expr.I(l.ahead()))
	if l.reused() {
		next = ir.Block{&ir.If{Cond: expr.Simplify(expr.Bin(expr.Lt, later, l.end())), Then: l.begun(later, later)}}
	}
	out = append(out, l.stepping(next))
	if l.boxes != nil && l.looped {
		out = append(out, l.full.end())
	}
	return out
}

// begin makes the rings, and the mbarriers of boxes.
func (l *pipelineLoop) begin() (out ir.Block) {
	for _, t := range l.tensors() {
		out = append(out, &ir.Alloc{Buffer: l.rings[t]})
	}
	if l.boxes != nil {
		out = append(out, l.full.begin()...)
	}
	return out
}

// stepping is the loop, whose steps begin the copies of a later one as next says.
func (l *pipelineLoop) stepping(next ir.Block) *ir.For {
	body := l.arrived()
	if l.products && l.reused() {
		body = append(body, &ir.WaitProducts{Groups: l.steps - 1 - l.ahead()})
	}
	if l.threads() > 1 && (l.asynchronously() || l.reused()) {
		// One barrier does for two things: what others have copied is there, and what is copied next is not read any
		// more.
		body = append(body, &ir.Barrier{})
	}
	body = append(append(body, next...), l.closed()...)
	return l.With(append(body, l.computed()...))
}

// asynchronously reports whether threads copy asynchronously.
func (l *pipelineLoop) asynchronously() bool { return len(l.fetch) > 0 }

// arrived is what waits for the copies of the step at hand.
func (l *pipelineLoop) arrived() (b ir.Block) {
	if l.asynchronously() {
		b = append(b, &ir.Wait{Groups: l.ahead() - 1})
	}
	if l.boxes != nil {
		b = append(b, l.full.wait(l.place(l.Var), l.parity()))
	}
	return b
}

// parity is that of the phase of the step at hand: a place in the rings is used again and again.
func (l *pipelineLoop) parity() expr.Expr {
	used := expr.SubE(l.Var, l.first(0))
	if l.tile != nil {
		used = expr.AddE(l.tile, l.Var)
	}
	return expr.Simplify(expr.Bin(expr.FloorMod, expr.Bin(expr.FloorDiv, used, expr.I(l.steps)), expr.I(2)))
}

// closed closes a group of the copies by threads, where there are any: also one without copies is counted.
func (l *pipelineLoop) closed() ir.Block {
	if !l.asynchronously() {
		return nil
	}
	return ir.Block{&ir.Commit{}}
}

// first is the step that comes as number k.
func (l *pipelineLoop) first(k int64) expr.Expr {
	if l.Range == nil {
		return expr.I(k)
	}
	return expr.AddE(l.Range.First, expr.I(k))
}

// end is that behind the last step.
func (l *pipelineLoop) end() expr.Expr {
	if l.Range == nil {
		return expr.I(l.Extent)
	}
	return l.Range.End
}

// ready begins the copies of a step before the loop, if there is one.
func (l *pipelineLoop) ready(step expr.Expr) ir.Block {
	if l.Range == nil {
		return l.begun(step, step)
	}
	return ir.Block{&ir.If{Cond: expr.Simplify(expr.Bin(expr.Lt, step, l.end())), Then: l.begun(step, step)}}
}

// threads is how many threads copy or compute.
func (l *pipelineLoop) threads() int64 {
	most := int64(1)
	ir.Visit(l.Body, func(st ir.Stmt) {
		if n, ok := st.(*ir.For); ok && n.Kind == ir.Threads {
			most = max(most, n.Extent)
		}
	})
	return most
}
