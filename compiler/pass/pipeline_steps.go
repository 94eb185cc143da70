package pass

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
)

// ahead returns the number of steps by which copies precede computation: as many as there is room for. While
// products of the previous step are in flight, so are their operands.
func (l *pipelineLoop) ahead() int64 {
	switch {
	case !l.reused():
		return l.steps
	case l.products && l.steps > 2:
		return l.steps - 2
	}
	return l.steps - 1
}

// reused reports whether later steps overwrite the slots of earlier ones.
func (l *pipelineLoop) reused() bool { return l.steps < l.Extent || l.tile != nil }

// run returns the pipelined loop with its prologue and epilogue.
func (l *pipelineLoop) run() ir.Block {
	out := l.begin()
	if l.boxes == nil && l.persistent && l.threads() > 1 {
		out = append(out, &ir.Barrier{}) // after it, no thread reads the slots of the previous tile
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
		out = append(out, l.full.invalidate())
	}
	return out
}

// begin allocates the rings and the mbarriers of boxes.
func (l *pipelineLoop) begin() (out ir.Block) {
	for _, t := range l.tensors() {
		out = append(out, &ir.Alloc{Buffer: l.rings[t]})
	}
	if l.boxes != nil {
		out = append(out, l.full.init()...)
	}
	return out
}

// stepping returns the loop, in which each step starts the copies in next.
func (l *pipelineLoop) stepping(next ir.Block) *ir.For {
	body := l.arrived()
	if l.products && l.reused() {
		body = append(body, ir.Exec(nvidia.Products.Wait, ir.Of(expr.I(l.steps-1-l.ahead()))))
	}
	if l.threads() > 1 && (l.asynchronously() || l.reused()) {
		// One barrier serves both purposes: the copies of other threads have arrived, and the slot that is copied
		// next is no longer read.
		body = append(body, &ir.Barrier{})
	}
	body = append(append(body, next...), l.closed()...)
	return l.With(append(body, l.computed()...))
}

// asynchronously reports whether threads issue asynchronous copies.
func (l *pipelineLoop) asynchronously() bool { return len(l.fetch) > 0 }

// arrived waits for the copies of the current step.
func (l *pipelineLoop) arrived() (b ir.Block) {
	if l.asynchronously() {
		b = append(b, ir.Exec(nvidia.Copies.Wait, ir.Of(expr.I(l.ahead()-1))))
	}
	if l.boxes != nil {
		b = append(b, l.full.wait(l.place(l.Var), l.parity()))
	}
	return b
}

// parity returns the phase parity of the current step, since slots are reused.
func (l *pipelineLoop) parity() expr.Expr {
	used := expr.SubE(l.Var, l.first(0))
	if l.tile != nil {
		used = expr.AddE(l.tile, l.Var)
	}
	return expr.Simplify(expr.Bin(expr.FloorMod, expr.Bin(expr.FloorDiv, used, expr.I(l.steps)), expr.I(2)))
}

// closed commits the group of copies by threads, if any. Empty groups count, too.
func (l *pipelineLoop) closed() ir.Block {
	if !l.asynchronously() {
		return nil
	}
	return ir.Block{ir.Exec(nvidia.Copies.Commit)}
}

// first returns the step at position k.
func (l *pipelineLoop) first(k int64) expr.Expr {
	if l.Range == nil {
		return expr.I(k)
	}
	return expr.AddE(l.Range.First, expr.I(k))
}

// end returns the step after the last one.
func (l *pipelineLoop) end() expr.Expr {
	if l.Range == nil {
		return expr.I(l.Extent)
	}
	return l.Range.End
}

// ready starts the copies of a step before the loop, if the step exists.
func (l *pipelineLoop) ready(step expr.Expr) ir.Block {
	if l.Range == nil {
		return l.begun(step, step)
	}
	return ir.Block{&ir.If{Cond: expr.Simplify(expr.Bin(expr.Lt, step, l.end())), Then: l.begun(step, step)}}
}

// threads returns the number of threads that copy or compute.
func (l *pipelineLoop) threads() int64 {
	largest := int64(1)
	ir.Visit(l.Body, func(st ir.Stmt) {
		if n, ok := st.(*ir.For); ok && n.Kind == ir.Threads {
			largest = max(largest, n.Extent)
		}
	})
	return largest
}
