package pass

import (
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// minAsync is the smallest size of an asynchronous copy in bytes.
const minAsync = 4

// PipelineBegin starts all copies of a step that is fetched on demand, and waits for them together. Waiting for
// each copy would cost a round trip to global memory each. Launches that fetch ahead stay unchanged, since they
// count the copies in flight.
func PipelineBegin(f *ir.Func) *ir.Func {
	body := make(ir.Block, len(f.Body))
	for k, st := range f.Body {
		if n, ok := st.(*ir.For); ok && n.Kind == ir.Blocks && !hasBoxes(n.Body) && !ir.Any(n.Body, func(c *ir.Copy) bool { return c.Starts != nil }) {
			st = n.With(pipelineTensors(allocated(n.Body)).settled(n.Body))
		}
		body[k] = st
	}
	return f.With(body)
}

// settling waits for all copies.
var settling = ir.Block{ir.Exec(nvidia.Copies.Commit), ir.Exec(nvidia.Copies.Wait, ir.Of(expr.I(0)))}

// pipelineTensors is a set of tensors: those a launch allocates in shared memory or registers, or those with copies
// in flight.
type pipelineTensors map[*expr.Tensor]bool

// begun rewrites a block so that its copies start early and are waited for before the first statement that uses
// them. around holds the tensors with copies in flight at the start of the block, left those at its end.
func (o pipelineTensors) begun(b ir.Block, around pipelineTensors) (out ir.Block, left pipelineTensors) {
	left = around
	for _, st := range b {
		if fills, copies := o.copies(st); fills {
			if n, ok := st.(*ir.For); ok && copies {
				left, st = left.with(n), n.With(o.asynchronous(n.Body))
			}
			out = append(out, st)
			continue
		}
		n, isLoop := st.(*ir.For)
		within := isLoop && n.Kind != ir.Threads && n.Kind != ir.Persistent && n.Range == nil // it waits in its first iteration
		if !within && left.usedBy(st) {
			out, left = append(out, settling...), pipelineTensors{}
		}
		switch n := st.(type) {
		case *ir.For:
			if n.Kind == ir.Threads {
				break
			}
			before := left
			if !within || !left.usedBy(st) {
				before = pipelineTensors{}
			}
			body, after := o.begun(n.Body, before)
			if len(after) > 0 {
				body, after = append(body, settling...), pipelineTensors{}
			}
			if st = n.With(body); len(before) > 0 {
				left = after
			}
		case *ir.If:
			st = &ir.If{Cond: n.Cond, Then: o.settled(n.Then), Else: o.settled(n.Else)}
		}
		out = append(out, st)
	}
	return out, left
}

// settled rewrites a block that leaves no copies in flight.
func (o pipelineTensors) settled(b ir.Block) ir.Block {
	out, left := o.begun(b, pipelineTensors{})
	if len(left) > 0 {
		out = append(out, settling...)
	}
	return out
}

// with returns the set extended by the tensors that a statement writes.
func (o pipelineTensors) with(st ir.Stmt) pipelineTensors {
	sum := maps.Clone(o)
	maps.Copy(sum, ir.Changed(ir.Block{st}))
	return sum
}

// usedBy reports whether a statement reads or writes any tensor of the set.
func (o pipelineTensors) usedBy(st ir.Stmt) bool {
	for t := range o {
		if ir.Uses(ir.Block{st}, t) {
			return true
		}
	}
	return false
}

// copies reports whether a loop over threads, or one around such loops, only fills shared memory, and whether part
// of it can be copied asynchronously.
func (o pipelineTensors) copies(st ir.Stmt) (fills, asynchronously bool) {
	n, ok := st.(*ir.For)
	if !ok || n.Kind == ir.Persistent || n.Range != nil {
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

// copied returns the asynchronous copy equivalent to a statement; ok is false if it has no such form.
func (o pipelineTensors) copied(st ir.Stmt) (c *ir.Copy, ok bool) {
	switch n := st.(type) {
	case *ir.Copy:
		if o[n.From.Tensor] {
			return nil, false
		}
		one := *n
		c = &one
	case *ir.Store:
		from, valid, isCopy := schedule.CopyOf(n.Value)
		if !isCopy || n.Buffer.Space != ir.Shared || o[from.Tensor] || from.DType() != n.Buffer.Tensor.DType {
			return nil, false
		}
		c = &ir.Copy{To: n.Buffer, Index: n.Index, From: from, Elements: 1, Valid: valid}
	default:
		return nil, false
	}
	c.Starts = nvidia.Copies
	return c, c.Elements*c.To.Tensor.DType.Bytes() >= minAsync
}

// fills reports whether a statement writes to shared memory from a source other than shared memory and registers.
func (o pipelineTensors) fills(st ir.Stmt) bool {
	switch n := st.(type) {
	case *ir.Copy:
		return true
	case *ir.Store:
		return n.Buffer.Space == ir.Shared && !slices.ContainsFunc(expr.Loads(n.Value), func(l *expr.Load) bool { return o[l.Tensor] })
	}
	return false
}

func (o pipelineTensors) asynchronous(b ir.Block) ir.Block {
	return ir.MapEach(b, func(st ir.Stmt) ir.Stmt {
		if c, ok := o.copied(st); ok {
			return c
		}
		return nil
	})
}
