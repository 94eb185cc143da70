package lower

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// partialSums is the stage with divided sums while its tiles are generated.
type partialSums struct {
	*schedule.Stage
	// parts holds partial sums, each in a slot of the given number of elements.
	parts    *ir.Buffer
	elements int64
	// slot is the slot of the current part.
	slot expr.Expr
	// steps is the block's range of steps of the sum, whole the condition that it is all of them: set in the launch
	// that computes sums.
	steps *ir.Range
	whole expr.Expr
	// blocks is the range of blocks that have a part: set in the launch that adds parts up.
	blocks *ir.Range
	part   *expr.Var
}

// streamKLaunches emits the launch in which blocks compute equal shares of all sums, and the one that adds up the
// parts of divided sums.
func (l *lowerer) streamKLaunches(n *nest, pos int, tiles int64) ir.Block {
	it := n.g.Leaves[pos]
	acc := l.order[slices.IndexFunc(l.order, func(g *schedule.Stage) bool { return g.At == it })]
	steps := stepsOf(acc)
	l.spend(int(it.PersistentBlocks))
	s, err := newStreamK(acc, tiles, steps, it.Distribution)
	if err != nil {
		panic(failure{err})
	}
	name := fmt.Sprintf("parts%d", acc.ID)
	c := &partialSums{Stage: acc, parts: &ir.Buffer{Tensor: ir.Flat(name, acc.Tensor.DType, 0), Space: ir.Scratch}}
	l.partial = c
	defer func() { l.partial = nil }()
	first := l.computeShares(n, pos, s)
	// A block and a tile identify a part: along all steps, one of the two increases from one part to the next.
	c.parts.Tensor.Shape[0] = (s.blocks + s.tiles - s.wholeTiles) * c.elements
	second := l.addParts(n, pos, s)
	return ir.Block{&ir.Alloc{Buffer: c.parts}, first, second}
}

// computeShares returns the launch that computes sums and parts of them.
func (l *lowerer) computeShares(n *nest, pos int, s *streamK) ir.Stmt {
	block := &expr.Var{Name: "block", Extent: s.blocks}
	round := &expr.Var{Name: "round", Extent: s.wholeRounds + s.maxPieces}
	tile, lo, hi, lets := s.piece(block, round)
	l.partial.slot = expr.AddE(block, expr.SubE(tile, expr.I(s.wholeTiles)))
	l.partial.whole = expr.Bin(expr.And, expr.Bin(expr.Eq, lo, expr.I(0)), expr.Bin(expr.Eq, hi, expr.I(s.steps)))
	mean := float64(s.tiles*s.steps) / float64(s.wholeTiles+s.pieces)
	l.partial.steps = &ir.Range{First: lo, End: hi, Every: 1, Mean: mean}
	body := l.tile(n, pos, tile)
	body = append(lets, body...)
	if round.Extent > 1 {
		body = ir.Block{&ir.For{Var: round, Extent: round.Extent, Kind: ir.Persistent, Range: s.walk(block), Body: body}}
	} else {
		body = append(ir.Block{&ir.Let{Var: round, Value: expr.I(0)}}, body...)
	}
	return &ir.For{Var: block, Extent: s.blocks, Kind: ir.Blocks, Tiles: &ir.Tiles{Count: s.tiles, Max: s.maxSteps()}, Body: body}
}

// addParts returns the launch that adds up the parts of divided sums, in block order.
func (l *lowerer) addParts(n *nest, pos int, s *streamK) ir.Stmt {
	rest := s.tiles - s.wholeTiles
	number := &expr.Var{Name: "cut", Extent: rest}
	first, last := &expr.Var{Name: "first", Extent: s.blocks}, &expr.Var{Name: "last", Extent: s.blocks}
	from := expr.MulE(number, expr.I(s.steps))
	l.partial.part = &expr.Var{Name: "part", Extent: s.blocks}
	l.partial.slot = expr.AddE(l.partial.part, number)
	l.partial.blocks = &ir.Range{First: first, End: expr.AddE(last, expr.I(1)), Every: 1, Mean: s.parts}
	body := l.tile(n, pos, expr.AddE(expr.I(s.wholeTiles), number))
	return &ir.For{Var: number, Extent: rest, Kind: ir.Blocks, Body: ir.Block{
		&ir.Let{Var: first, Value: s.blockOfStep(from)},
		&ir.Let{Var: last, Value: s.blockOfStep(expr.AddE(from, expr.I(s.steps-1)))},
		&ir.If{Cond: expr.Bin(expr.Lt, first, last), Then: body},
	}}
}

// stepsOf returns the number of steps in the sums of a stage: the iterations of the outermost reduction loop.
func stepsOf(acc *schedule.Stage) int64 {
	n := newNest(acc, make([]expr.Expr, len(acc.Axes)), acc.Tensor.Shape)
	it := acc.Leaves[slices.IndexFunc(acc.Leaves, func(it *schedule.Iter) bool { return it.Reduce })]
	switch sp := it.Parent; {
	case it.Kind != schedule.Serial:
		fail("the outermost loop of the reduction of stage %d, which is split by Stream-K, is not a serial loop", acc.ID)
	case sp != nil && (it != sp.Outer || sp.Parent.Parent != nil || n.partial(sp)), it.Fused != nil:
		fail("the sums of stage %d are split by Stream-K, and their steps are not whole tiles of an axis", acc.ID)
	}
	return n.extent(it)
}

// sumOrPart emits the sums of a tile with loops n: all of them, a part, or the addition of parts. Then follows rest,
// which uses complete sums.
func (l *lowerer) sumOrPart(n *nest, rest func() ir.Block) ir.Block {
	c, b := l.partial, l.bindings[n.g.Tensor].buffer
	if c.elements == 0 {
		c.elements = b.Elements()
	}
	if b.Elements() > c.elements {
		fail("stage %d has larger tiles than its first one, whose sums Stream-K cannot split", n.g.ID)
	}
	if c.blocks != nil {
		return l.fixUp(n, rest)
	}
	n.steps = c.steps
	sums := l.generate(n, 0)
	stored := l.each(n, func(index expr.Expr) *ir.Store {
		return &ir.Store{Buffer: c.parts, Index: c.at(index), Value: b.Tensor.At(index)}
	})
	return append(sums, &ir.If{Cond: c.whole, Then: rest(), Else: stored})
}

// fixUp adds up the parts of a tile's sums.
func (l *lowerer) fixUp(n *nest, rest func() ir.Block) ir.Block {
	c, b := l.partial, l.bindings[n.g.Tensor].buffer
	begun := l.each(n, func(index expr.Expr) *ir.Store {
		return &ir.Store{Buffer: b, Index: index, Value: n.g.Combiner.Identity(n.g.Tensor.DType)}
	})
	added := l.each(n, func(index expr.Expr) *ir.Store {
		return &ir.Store{Buffer: b, Index: index, Value: n.g.Combiner.Combine(b.Tensor.At(index), c.parts.Tensor.At(c.at(index)))}
	})
	all := append(begun, &ir.For{Var: c.part, Extent: c.part.Extent, Kind: ir.Serial, Range: c.blocks, Body: added})
	return append(all, rest()...)
}

// at returns the place of an element of the current part.
func (c *partialSums) at(index expr.Expr) expr.Expr {
	return expr.Linearize(expr.AddE(expr.MulE(c.slot, expr.I(c.elements)), index)).Expr()
}

// each makes the threads that compute the elements of a stage store a value for each.
func (l *lowerer) each(n *nest, store func(index expr.Expr) *ir.Store) ir.Block {
	n = n.clone()
	n.init, n.store = true, store
	return l.generate(n, 0)
}
