package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Limits on the additional versions of a loop nest. Reductions test their conditions in the innermost loop, where
// they cost most: for a 35x35 pool, versions beyond the fourth save 20 to 33 % of the time. Nests that only move or
// map elements, such as Winograd transforms, get as many versions as fit into mapped statements, and at least the
// minimum: convolutions of 14x14 and 28x28 were as fast with 4 as with 12.
const (
	maxPartitions    = 12
	minPartitions    = 4
	mappedStatements = 64
)

// Partition removes the conditions of selected values, which come from padding, concatenation and slices, from
// serial loops. It hoists loop-invariant conditions, splits a loop where a condition changes its value, and makes a
// version of a loop without a condition that holds throughout. Halide calls this loop partitioning.
func Partition(f *ir.Func) *ir.Func { return f.With(partitionBlock(f.Body)) }

func partitionBlock(b ir.Block) ir.Block {
	var out ir.Block
	for _, st := range b {
		if n, ok := st.(*ir.For); ok && n.Kind == ir.Serial {
			p := partitioner{budget: versions(n)}
			out = append(out, p.loop(n)...)
			continue
		}
		out = append(out, ir.MapInside(st, partitionBlock))
	}
	return out
}

// partitioner creates the versions of one nest.
type partitioner struct {
	// budget is the number of copies that may still be made.
	budget int
	// kept lists the conditions that the current version cannot assume.
	kept []*expr.Binary
	// inTile is set inside a tile, where loops do not run over positions.
	inTile bool
}

// versions returns the number of additional versions allowed for a nest.
func versions(n *ir.For) int {
	for _, c := range comparisons(n.Body) {
		if !copies(n, c) {
			return maxPartitions
		}
	}
	return int(min(maxPartitions, max(minPartitions, mappedStatements/max(1, statements(n.Body)))))
}

func (p *partitioner) block(b ir.Block) ir.Block {
	var out ir.Block
	for _, st := range b {
		n, isLoop := st.(*ir.For)
		switch {
		case isLoop && n.Kind == ir.Serial:
			out = append(out, p.loop(n)...)
		case isLoop:
			out = append(out, st)
		default:
			out = append(out, ir.MapInside(st, p.block))
		}
	}
	return out
}

func (p *partitioner) loop(n *ir.For) ir.Block {
	conditions, inner := p.undecided(n), variables(n)
	if p.budget > 0 {
		if at, ok := shifted(n, conditions); ok {
			first, last := partitionPart(n, 0, at), partitionPart(n, at, n.Extent-at)
			first.Body, last.Body = settle(first.Body), settle(last.Body)
			return p.parts(first, last)
		}
		for _, c := range conditions {
			if block, ok := p.outside(n, c, inner); ok {
				return block
			}
		}
		for _, c := range conditions {
			if block, ok := p.whole(n, c, inner); ok {
				return block
			}
		}
		for _, c := range conditions {
			if at, ok := cut(n, c, inner); ok {
				return p.parts(partitionPart(n, 0, at), partitionPart(n, at, n.Extent-at))
			}
		}
	}
	outer := p.inTile
	p.inTile = outer || slices.ContainsFunc(n.Body, func(st ir.Stmt) bool { _, ok := st.(*ir.Alloc); return ok })
	out := ir.Block{n.With(p.block(n.Body))}
	p.inTile = outer
	return out
}

// parts returns the two parts of a loop. Of loops of dynamic extent, whose borders take more versions, the longer part
// takes what it needs first.
func (p *partitioner) parts(first, last *ir.For) ir.Block {
	p.budget--
	if first.Range != nil && last.Extent > first.Extent {
		rest := p.loop(last)
		return append(p.loop(first), rest...)
	}
	block := p.loop(first)
	return append(block, p.loop(last)...)
}

// undecided returns the conditions in a loop, except those that the current version keeps and those of a copy that
// supports the loop's main work.
func (p *partitioner) undecided(n *ir.For) []*expr.Binary {
	return slices.DeleteFunc(comparisons(n.Body), func(c *expr.Binary) bool {
		return slices.ContainsFunc(p.kept, func(x *expr.Binary) bool { return expr.Same(x, c) }) || isAside(n, c)
	})
}

// outside tests a condition outside the innermost position loop that leaves it unchanged, or outside a tile's
// outermost loop. A condition that depends on inner variables is tested for all their values at once; the version
// for the borders keeps it. Loops of dynamic extent are left to whole, since the test would rarely hold for the
// maximum extent.
func (p *partitioner) outside(n *ir.For, c *expr.Binary, inner map[*expr.Var]bool) (ir.Block, bool) {
	if expr.Uses(c, n.Var) && (!p.inTile || n.Range != nil) || !p.inTile && usesAny(c, positions(n.Body)) || usesAny(c, ranged(n.Body)) {
		return nil, false
	}
	whole, exact, ok := forAll(c, inner)
	if !ok {
		return nil, false
	}
	if _, decided := whole.(*expr.Int); decided { // never holds for all values
		return nil, false
	}
	p.budget--
	then := p.loop(decide(n, c, 1))
	if exact {
		return ir.Block{&ir.If{Cond: whole, Then: then, Else: p.loop(decide(n, c, 0))}}, true
	}
	p.kept = append(p.kept, c)
	border := p.loop(n)
	p.kept = p.kept[:len(p.kept)-1]
	return ir.Block{&ir.If{Cond: whole, Then: then, Else: border}}, true
}

// whole splits a loop of dynamic extent into the iterations for which a comparison holds for all inner values, and
// the few others, which keep the comparison.
func (p *partitioner) whole(n *ir.For, c *expr.Binary, inner map[*expr.Var]bool) (ir.Block, bool) {
	if n.Range == nil || !divisible(n) {
		return nil, false
	}
	coef, _, rest, ok := partitionApart(n, c, inner)
	if !ok || coef < 1 || len(rest.Terms) == 0 {
		return nil, false
	}
	if c.Op == expr.Le {
		rest.Const--
	}
	// The comparison holds where coef*v + rest < 0.
	smallest := expr.Bin(expr.FloorDiv, expr.SubE(expr.I(coef-1), rest.Expr()), expr.I(coef))
	at := &expr.Var{Name: "whole"}
	p.budget--
	first := decide(n, c, 1)
	first.Range = &ir.Range{First: expr.I(0), End: at, Every: 1, Mean: n.Range.Mean}
	v := &expr.Var{Name: n.Var.Name, Extent: n.Extent}
	s := expr.Simplifier{Values: map[*expr.Var]expr.Expr{n.Var: v}}
	last := n.With(ir.Rewrite(n.Body, s.Simplify))
	last.Var, last.Range = v, &ir.Range{First: at, End: n.Range.End, Every: 1, Mean: 1}
	let := &ir.Let{Var: at, Value: expr.Simplify(expr.MaxE(expr.I(0), expr.MinE(smallest, n.Range.End)))}
	block := append(ir.Block{let}, p.loop(first)...)
	p.kept = append(p.kept, expr.Substitute(c, map[*expr.Var]expr.Expr{n.Var: v}).(*expr.Binary))
	tail := p.loop(last)
	p.kept = p.kept[:len(p.kept)-1]
	return append(block, tail...), true
}

// ranged returns the variables of loops with dynamic extents.
func ranged(b ir.Block) map[*expr.Var]bool {
	found := map[*expr.Var]bool{}
	ir.Visit(b, func(st ir.Stmt) {
		if x, ok := st.(*ir.For); ok && x.Range != nil {
			found[x.Var] = true
		}
	})
	return found
}

// variables returns the variables of a loop and of the loops inside it.
func variables(n *ir.For) map[*expr.Var]bool {
	found := map[*expr.Var]bool{n.Var: true}
	ir.Visit(n.Body, func(st ir.Stmt) {
		switch x := st.(type) {
		case *ir.For:
			found[x.Var] = true
		case *ir.Let:
			found[x.Var] = true
		}
	})
	return found
}

// positions returns the variables of the serial loops that run over tiles, or over elements in code without tiles.
// A tile starts with its scratch buffer.
func positions(b ir.Block) map[*expr.Var]bool {
	tiled := ir.Has[*ir.Alloc](b)
	found := map[*expr.Var]bool{}
	ir.Visit(b, func(st ir.Stmt) {
		if x, ok := st.(*ir.For); ok && x.Kind == ir.Serial && (!tiled || ir.Has[*ir.Alloc](x.Body)) {
			found[x.Var] = true
		}
	})
	return found
}

// forAll returns the condition that a comparison holds for all values of the inner variables. exact is set if the
// comparison does not depend on them.
func forAll(c *expr.Binary, inner map[*expr.Var]bool) (whole expr.Expr, exact, ok bool) {
	bound := expr.Linearize(expr.SubE(c.A, c.B)) // the comparison holds where bound < 0, or <= 0
	outer := expr.Linear{Const: bound.Const}
	exact = true
	for _, t := range bound.Terms {
		v, isVar := t.Atom.(*expr.Var)
		switch {
		case isVar && inner[v]:
			exact = false
			if v.Extent <= 0 {
				return nil, false, false
			}
			outer.Const += max(0, t.Coef*(v.Extent-1))
		case usesAny(t.Atom, inner):
			return nil, false, false
		default:
			outer.Terms = append(outer.Terms, t)
		}
	}
	return expr.Simplify(expr.Bin(c.Op, outer.Expr(), expr.I(0))), exact, true
}

// cut returns the iteration at which a comparison changes its value, over all values of the inner variables. ok is
// false if that lies outside the loop's range.
func cut(n *ir.For, c *expr.Binary, inner map[*expr.Var]bool) (at int64, ok bool) {
	if !divisible(n) {
		return 0, false
	}
	coef, lo, hi, ok := partitionApart(n, c, inner)
	if !ok || coef == 0 || len(hi.Terms) > 0 {
		return 0, false
	}
	smallest := int64(0) // the smallest bound for which the comparison fails
	if c.Op == expr.Le {
		smallest = 1
	}
	for _, rest := range []int64{hi.Const, lo.Const} {
		if at := crossing(coef, smallest-rest); at > 0 && at < n.Extent {
			return at, true
		}
	}
	return 0, false
}

// partitionApart decomposes a comparison into coef*v + rest < 0, or <= 0, where v is the loop variable. rest lies
// between lo and hi for all values of the inner variables. ok is false if the comparison has another form.
func partitionApart(n *ir.For, c *expr.Binary, inner map[*expr.Var]bool) (coef int64, lo, hi expr.Linear, ok bool) {
	bound := expr.Linearize(expr.SubE(c.A, c.B))
	lo.Const, hi.Const = bound.Const, bound.Const
	for _, t := range bound.Terms {
		v, isVar := t.Atom.(*expr.Var)
		switch {
		case isVar && v == n.Var:
			coef = t.Coef
		case isVar && inner[v] && v.Extent > 0:
			lo.Const += min(0, t.Coef*(v.Extent-1))
			hi.Const += max(0, t.Coef*(v.Extent-1))
		case usesAny(t.Atom, inner):
			return 0, lo, hi, false
		default:
			lo.Terms, hi.Terms = append(lo.Terms, t), append(hi.Terms, t)
		}
	}
	return coef, lo, hi, true
}

// crossing returns the first v from which coef*v >= limit holds or, for a negative coefficient, fails.
func crossing(coef, limit int64) int64 {
	if coef > 0 {
		return -expr.FloorDivInt(-limit, coef)
	}
	return expr.FloorDivInt(-limit, -coef) + 1
}

// comparisons returns the distinct integer comparisons in the conditions of stored values.
func comparisons(b ir.Block) []*expr.Binary {
	var list []*expr.Binary
	add := func(c *expr.Binary) {
		if !slices.ContainsFunc(list, func(x *expr.Binary) bool { return expr.Same(x, c) }) {
			list = append(list, c)
		}
	}
	ir.Visit(b, func(st ir.Stmt) {
		if s, ok := st.(*ir.Store); ok {
			expr.Walk(s.Value, func(e expr.Expr) {
				if x, ok := e.(*expr.Select); ok {
					eachComparison(x.Cond, add)
				}
			})
		}
	})
	return list
}

func eachComparison(e expr.Expr, visit func(*expr.Binary)) {
	b, ok := e.(*expr.Binary)
	switch {
	case !ok:
	case b.Op == expr.And || b.Op == expr.Or:
		eachComparison(b.A, visit)
		eachComparison(b.B, visit)
	case (b.Op == expr.Lt || b.Op == expr.Le) && b.A.DType() == array.Int64 && len(expr.Loads(b)) == 0:
		visit(b)
	}
}

func usesAny(e expr.Expr, vars map[*expr.Var]bool) bool {
	found := false
	expr.Walk(e, func(x expr.Expr) {
		if v, ok := x.(*expr.Var); ok {
			found = found || vars[v]
		}
	})
	return found
}

// partitionPart returns the given range of a loop.
func partitionPart(n *ir.For, first, extent int64) *ir.For {
	v := &expr.Var{Name: n.Var.Name, Extent: extent}
	s := expr.Simplifier{Values: map[*expr.Var]expr.Expr{n.Var: expr.AddE(v, expr.I(first))}}
	part := &ir.For{Var: v, Extent: extent, Kind: n.Kind, Body: ir.Rewrite(n.Body, s.Simplify)}
	if n.Range != nil {
		end := expr.Simplify(expr.MinE(expr.SubE(n.Range.End, expr.I(first)), expr.I(extent)))
		part.Range = &ir.Range{First: expr.I(0), End: end, Every: 1, Mean: min(max(0, n.Range.Mean-float64(first)), float64(extent))}
	}
	return part
}

// divisible reports whether partitionPart can divide a loop.
func divisible(n *ir.For) bool {
	return n.Range == nil || n.Range.Every == 1 && expr.Same(n.Range.First, expr.I(0))
}

// decide substitutes the value of a comparison in a nest.
func decide(n *ir.For, c *expr.Binary, value int64) *ir.For {
	known := func(e expr.Expr) expr.Expr {
		return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
			if expr.Same(x, c) {
				return &expr.Int{Value: value, Type: array.Bool}
			}
			return x
		})
	}
	return n.With(ir.Rewrite(n.Body, known))
}
