package pass

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// persistentLoop is the loop over the tiles of a persistent block, each with a pipelined loop. The last steps of a
// tile start the first copies of the next tile, so that it starts without a wait.
type persistentLoop struct {
	*ir.For
	steps *pipelineLoop
	// before and behind are the statements around a tile's loop over steps.
	before, behind ir.Block
}

// maxSteps is the largest number of steps that a block counts.
const maxSteps = 1<<31 - 1

// newPersistentLoop matches one; ok is false unless each tile has exactly one pipelined loop of the same number of
// steps, and the steps of a block can be counted.
func (inside near) newPersistentLoop(n *ir.For) (w *persistentLoop, ok bool) {
	if n.Kind != ir.Persistent || n.Extent < 2 {
		return nil, false
	}
	for k, st := range n.Body {
		loop, isLoop := st.(*ir.For)
		if !isLoop || loop.Kind != ir.Serial || loop.Range != nil {
			continue
		}
		if steps, piped := inside.newLoop(loop); piped {
			if n.Extent/n.Range.Every >= maxSteps/loop.Extent {
				return nil, false
			}
			w = &persistentLoop{For: n, steps: steps, before: n.Body[:k], behind: n.Body[k+1:]}
			return w, w.names() && !allocatesAhead(w.before) && !allocatesAhead(w.behind)
		}
	}
	return nil, false
}

// names reports whether the names defined before the loop over steps depend on the tile number alone.
func (w *persistentLoop) names() bool {
	all := true
	for _, st := range w.before {
		if n, ok := st.(*ir.Let); ok {
			all = all && len(expr.Loads(n.Value)) == 0
		}
	}
	return all
}

// allocatesAhead reports whether a block allocates other pipelined buffers.
func allocatesAhead(b ir.Block) bool {
	return ir.Any(b, func(a *ir.Alloc) bool { return a.Buffer.Steps > 0 })
}

// run returns the loop with its prologue.
func (w *persistentLoop) run() ir.Block {
	l := w.steps
	out := l.begin()
	first, names := w.at(w.Range.First)
	out = append(out, names...)
	turns := l.steps
	if l.boxes != nil {
		turns *= 2 // the parity of a phase distinguishes uses of an mbarrier
	}
	l.tile = &expr.Var{Name: "turn", Extent: turns}
	ahead := l.ahead()
	for k := range ahead {
		copies := w.moved(l.begun(expr.I(k), expr.I(k)), first)
		// The first tile starts at the first slot.
		copies = ir.Rewrite(copies, func(e expr.Expr) expr.Expr {
			return expr.Simplify(expr.Substitute(e, map[*expr.Var]expr.Expr{l.tile: expr.I(0)}))
		})
		out = append(append(out, copies...), l.closed()...)
	}
	later := expr.AddE(l.Var, expr.I(ahead))
	following, names := w.at(expr.AddE(w.Var, expr.I(w.Range.Every)))
	next := append(names, w.moved(l.begun(expr.SubE(later, expr.I(l.Extent)), later), following)...)
	more := expr.Simplify(expr.Bin(expr.Lt, expr.AddE(w.Var, expr.I(w.Range.Every)), w.Range.End))
	steps := l.stepping(ir.Block{&ir.If{
		Cond: expr.Simplify(expr.Bin(expr.Lt, later, expr.I(l.Extent))),
		Then: l.begun(later, later), Else: ir.Block{&ir.If{Cond: more, Then: next}},
	}})
	done := expr.MulE(expr.Bin(expr.FloorDiv, expr.SubE(w.Var, w.Range.First), expr.I(w.Range.Every)), expr.I(l.Extent))
	body := ir.Block{&ir.Let{Var: l.tile, Value: expr.Simplify(expr.Bin(expr.FloorMod, done, expr.I(turns)))}}
	body = append(append(body, w.before...), steps)
	return append(out, w.With(append(body, w.behind...)))
}

// at returns the names defined before the loop over steps, for the given tile.
func (w *persistentLoop) at(tile expr.Expr) (by map[*expr.Var]expr.Expr, names ir.Block) {
	by = map[*expr.Var]expr.Expr{w.Var: tile}
	for _, st := range w.before {
		if n, ok := st.(*ir.Let); ok {
			v := &expr.Var{Name: n.Var.Name, Extent: n.Var.Extent}
			names = append(names, &ir.Let{Var: v, Value: expr.Simplify(expr.Substitute(n.Value, by))})
			by[n.Var] = v
		}
	}
	return by, names
}

// moved returns copies rewritten for another tile.
func (w *persistentLoop) moved(copies ir.Block, by map[*expr.Var]expr.Expr) ir.Block {
	return ir.Rewrite(copies, func(e expr.Expr) expr.Expr { return expr.Simplify(expr.Substitute(e, by)) })
}
