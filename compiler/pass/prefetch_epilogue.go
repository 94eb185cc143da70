package pass

import (
	"maps"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine"
)

// Caches describes the data caches of the target.
type Caches struct {
	// LineBytes is the line size, L2Bytes the size of the second-level cache; 0 if unknown.
	LineBytes, L2Bytes int64
}

// PrefetchEpilogues prefetches the lines that the straight-line code after a tile of accumulators reads and writes,
// before the tile is computed. It skips a single result, which the store buffer absorbs, and data that fits into
// the second-level cache, where it does not pay. On Zen 4, for a 56x56 convolution of 64 to 256 channels with a
// residual and two results of 3 MB each in the third-level cache, it saves 0.24 ms of 1.7.
func PrefetchEpilogues(f *ir.Func, c Caches) *ir.Func {
	if c.L2Bytes == 0 {
		return f
	}
	e := &epilogues{caches: c, streamed: streamed(f)}
	return f.With(e.block(f.Body, map[*expr.Var]bool{}, &[]line{}))
}

// streamed returns the arguments that are not constants.
func streamed(f *ir.Func) map[*expr.Tensor]bool {
	found := map[*expr.Tensor]bool{}
	for n, b := range f.Args {
		if b != nil && f.Workload.Args()[n].Role != expr.Constant {
			found[b.Tensor] = true
		}
	}
	return found
}

type epilogues struct {
	caches   Caches
	streamed map[*expr.Tensor]bool
}

// line identifies the cache line of an element.
type line struct {
	tensor *expr.Tensor
	at     expr.Linear
	write  bool
}

// block rewrites a block in which the variables in bound are known. It does not repeat the prefetches of the
// innermost loop.
func (e *epilogues) block(b ir.Block, bound map[*expr.Var]bool, fetched *[]line) ir.Block {
	bound = maps.Clone(bound)
	var out ir.Block
	for k, st := range b {
		switch n := st.(type) {
		case *ir.Let:
			bound[n.Var] = true
		case *ir.If:
			st = &ir.If{Cond: n.Cond, Then: e.block(n.Then, bound, fetched), Else: e.block(n.Else, bound, fetched)}
		case *ir.For:
			if n.Kind == ir.Vector {
				break
			}
			bound[n.Var] = true
			st = n.With(e.block(n.Body, bound, &[]line{}))
			delete(bound, n.Var)
		}
		out = append(out, st)
		if n, ok := st.(*ir.Alloc); ok && n.Buffer.IsTile() {
			for _, l := range e.behind(b[k+1:], bound) {
				if !l.in(*fetched) {
					*fetched = append(*fetched, l)
					out = append(out, machine.Prefetch(l.tensor, l.at, l.write))
				}
			}
		}
	}
	return out
}

func (l line) in(list []line) bool {
	for _, x := range list {
		if d := x.at.Plus(l.at, -1); x.tensor == l.tensor && d.Const == 0 && len(d.Terms) == 0 {
			return true
		}
	}
	return false
}

// behind returns the lines that the vectors of a block access, if they are worth a prefetch.
func (e *epilogues) behind(b ir.Block, bound map[*expr.Var]bool) []line {
	c := &collector{epilogues: e, bound: bound, last: map[*expr.Tensor]expr.Linear{}}
	for _, st := range b {
		if loop, ok := st.(*ir.For); ok && loop.Kind == ir.Vector {
			c.vector(loop)
		}
	}
	bytes := int64(0)
	for t := range c.last {
		bytes += t.Shape[0] * t.DType.Bytes()
	}
	if len(c.last) < 2 || bytes <= e.caches.L2Bytes {
		return nil
	}
	return c.lines
}

// collector collects lines.
type collector struct {
	*epilogues
	bound map[*expr.Var]bool
	lines []line
	// last maps each tensor to the index fetched last.
	last map[*expr.Tensor]expr.Linear
}

func (c *collector) vector(n *ir.For) {
	for _, st := range n.Body {
		store, ok := st.(*ir.Store)
		if !ok {
			continue
		}
		for _, l := range expr.Loads(store.Value) {
			c.add(l.Tensor, l.Index[0], n.Var, false)
		}
		c.add(store.Buffer.Tensor, store.Index, n.Var, true)
	}
}

// add records the line in which a vector of an argument begins, unless the previous vector began in it.
func (c *collector) add(t *expr.Tensor, index expr.Expr, lane *expr.Var, write bool) {
	at := expr.Linearize(index)
	coef, linear := at.Coef(lane)
	if !linear || coef != 1 || !c.streamed[t] {
		return
	}
	at = at.Plus(expr.Linearize(lane), -1)
	if !allBound(at, c.bound) { // bound after the tile
		return
	}
	if last, seen := c.last[t]; seen {
		gap := at.Plus(last, -1)
		if len(gap.Terms) == 0 && gap.Const >= 0 && gap.Const*t.DType.Bytes() < c.caches.LineBytes {
			return
		}
	}
	c.last[t] = at
	c.lines = append(c.lines, line{t, at, write})
}

// allBound reports whether all variables of an index are bound.
func allBound(index expr.Linear, bound map[*expr.Var]bool) bool {
	all := true
	for _, term := range index.Terms {
		expr.Walk(term.Atom, func(e expr.Expr) {
			if v, ok := e.(*expr.Var); ok {
				all = all && bound[v]
			}
		})
	}
	return all
}
