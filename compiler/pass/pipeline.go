package pass

import (
	"maps"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Pipeline software-pipelines each loop that fills shared buffers ahead of their use, and gives it a ring of these
// buffers. Copies of the first steps start before the loop. Each step waits for its own copies, starts those of a
// later step, and computes meanwhile. A buffer that is filled by anything but copies, or outside a loop, is not
// filled ahead. Box copies signal mbarriers, one for each slot of the ring.
func Pipeline(f *ir.Func) *ir.Func {
	inside := near{tensors: pipelineTensors{}}
	for _, st := range f.Body {
		if n, ok := st.(*ir.For); ok {
			maps.Copy(inside.tensors, allocated(n.Body))
		}
	}
	return f.With(inside.block(f.Body))
}

// near holds the tensors allocated in launches, which are not sources of global copies, and records whether the
// current code lies in a loop or in a persistent block.
type near struct {
	tensors            pipelineTensors
	persistent, looped bool
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
			if w, ok := inside.newPersistentLoop(n); ok {
				out = append(out, w.run()...)
				continue
			}
			if boxesOf(n) == nil {
				body := near{inside.tensors, inside.persistent || n.Kind == ir.Persistent && n.Extent > 1, inside.looped || n.Kind != ir.Blocks}
				st = n.With(body.block(n.Body))
			}
		case *ir.If:
			st = &ir.If{Cond: n.Cond, Then: inside.block(n.Then), Else: inside.block(n.Else)}
		}
		out = append(out, st)
	}
	return atOnce(out, inside.looped)
}

// pipelineLoop is a loop whose buffers are filled ahead.
type pipelineLoop struct {
	*ir.For
	steps int64
	// persistent is set if the loop belongs to one of several tiles that share the rings. tile is the ring position of
	// a tile's first step, where tiles follow each other in the rings.
	persistent bool
	tile       *expr.Var
	// products is set if warpgroup instructions read the buffers asynchronously.
	products bool
	// rings maps the buffers of a step to their rings.
	rings map[*expr.Tensor]*ir.Buffer
	// fetch starts the copies of a step by threads, and rest computes the step; boxes are copied by one thread.
	fetch, rest ir.Block
	boxes       []*ir.Call
	// full holds the mbarriers of the boxes, one for each slot.
	full mbarriers
	// looped is set if the loop is nested in another one.
	looped bool
}

// newLoop matches a loop; ok is false if nothing in it is filled ahead.
func (inside near) newLoop(n *ir.For) (l *pipelineLoop, ok bool) {
	l = &pipelineLoop{For: n, persistent: inside.persistent, looped: inside.looped, rings: map[*expr.Tensor]*ir.Buffer{}}
	body := n.Body
	for k := 0; k < len(body); k++ {
		switch st := body[k].(type) {
		case *ir.Let: // so that copies for other steps can redefine it
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
		ahead, others := l.writes(body[k])
		boxes := boxesOf(body[k])
		if boxes != nil && l.rings[boxes[0].Args[0].Tensor] != nil {
			l.boxes = append(l.boxes, boxes...)
		} else if ahead && !others {
			l.fetch = append(l.fetch, body[k])
		} else {
			l.rest = append(l.rest, body[k])
		}
	}
	if more, _ := l.writes(l.rest...); len(l.rings) == 0 || n.Extent < 2 || !inside.copied(l.fetch) || more || hasBoxes(l.rest) {
		return nil, false
	}
	l.steps = min(l.steps, n.Extent)
	l.products = pipelineMultiplies(l.rest)
	l.full = newMbarriers(l.steps)
	for t, b := range l.rings {
		ring := *b
		ring.Tensor, ring.Steps = ir.Flat(t.Name, t.DType, l.steps*slotElements(t)), 0
		l.rings[t] = &ring
	}
	return l, true
}

// writes reports whether statements write to buffers that are filled ahead, and to others.
func (l *pipelineLoop) writes(b ...ir.Stmt) (ahead, others bool) {
	ir.Visit(b, func(st ir.Stmt) {
		if w := ir.Written(st); w != nil {
			_, is := l.rings[w.Tensor]
			ahead, others = ahead || is, others || !is
		}
	})
	return ahead, others
}

// copied reports whether statements store only values that can be copied asynchronously from global memory.
func (inside near) copied(b ir.Block) bool {
	return !ir.Any(b, func(st ir.Stmt) bool {
		switch st.(type) {
		case *ir.For, *ir.If, *ir.Let:
			return false
		}
		_, ok := inside.tensors.copied(st)
		return !ok
	})
}

// pipelineMultiplies reports whether statements compute only sums of products for warpgroup instructions, in one
// group per step.
func pipelineMultiplies(b ir.Block) bool {
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
