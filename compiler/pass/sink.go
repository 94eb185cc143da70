package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Sink interchanges a loop around a loop over threads with that loop, so that each thread runs all iterations. No
// thread may use what another one writes in a different iteration. Threads then need no barrier between iterations.
func Sink(f *ir.Func) *ir.Func { return ir.MapLoops(f, sinkLoop) }

// sinkLoop interchanges a loop with the loop over threads that makes up its body.
func sinkLoop(n *ir.For) ir.Stmt {
	if n.Kind == ir.Threads || n.Kind == ir.Blocks || len(n.Body) != 1 {
		return n
	}
	threads, ok := n.Body[0].(*ir.For)
	if !ok || threads.Kind != ir.Threads || !sinkApart(n, threads) {
		return n
	}
	return threads.With(ir.Block{n.With(threads.Body)})
}

// sinkApart reports whether no iteration accesses what another one writes.
func sinkApart(n, threads *ir.For) bool {
	var written []*expr.Tensor
	known := true
	ir.Visit(threads.Body, func(st ir.Stmt) {
		b := ir.Written(st)
		if b == nil {
			return
		}
		var index expr.Expr
		elements := int64(1)
		switch x := st.(type) {
		case *ir.Store:
			index = x.Index
		case *ir.Copy:
			index, elements = x.Index, x.Elements
		}
		known = known && index != nil && !slices.Contains(written, b.Tensor) &&
			(distinct(index, elements, n.Var) || tried(index, elements, n.Var))
		written = append(written, b.Tensor)
	})
	ir.VisitExprs(threads.Body, func(e expr.Expr) {
		for _, l := range expr.Loads(e) {
			known = known && !slices.Contains(written, l.Tensor)
		}
	})
	return known
}

// distinct reports whether different values of v give disjoint elements, for any values of the other variables:
// each term steps over the range of all smaller terms and of the elements written at the index.
func distinct(index expr.Expr, elements int64, v *expr.Var) bool {
	if g, ok := ir.GapsOf(index); ok && g.Apart(elements) && expr.Uses(g.Number, v) {
		return distinct(g.Number, 1, v)
	}
	if number, ok := ir.TransposedIndex(index, elements); ok {
		return distinct(number, 1, v)
	}
	terms := slices.Clone(expr.Linearize(index).Terms)
	coef := func(t expr.Term) int64 { return max(t.Coef, -t.Coef) }
	slices.SortFunc(terms, func(a, b expr.Term) int { return int(min(max(coef(a)-coef(b), -1), 1)) })
	found, span := false, elements-1
	for _, t := range terms {
		lo, hi, bounded := expr.Linearize(t.Atom).Bounds()
		its := t.Atom == expr.Expr(v)
		if !bounded || lo < 0 || coef(t) <= span || !its && expr.Uses(t.Atom, v) {
			return false
		}
		found = found || its
		span += coef(t) * hi
	}
	return found
}
