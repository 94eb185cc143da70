package lanewise

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// near is a load whose lanes lie so near one another that two vectors have them all: they are loaded whole and the
// lanes picked. A load of one element for all lanes does not use the lanes. Nil for any other.
func (l *loop) near(n *expr.Load) expr.Expr {
	if l.in.InRegisters(n.Tensor) {
		return nil
	}
	first, offsets := l.offsets(n)
	if offsets == nil {
		return nil
	}
	low, high := slices.Min(offsets), slices.Max(offsets)
	if low == high {
		return l.at(0, n)
	}
	// Whole blocks of the tensor are loaded, so that what other steps pick from a block is in the same vectors.
	block := l.block(first, n.Tensor.Shape[0])
	start, end := floor(first.Const+low, block), floor(first.Const+high, block)+block
	width, count := vectors(end-start, l.lane.Extent)
	if count > 2 {
		return nil
	}
	p := &ir.Picked{Lane: l.lane, Width: width, Picks: make([]int64, len(offsets))}
	begins := []int64{start, end - width}[:count]
	for _, at := range begins {
		source := first
		source.Const = at
		p.From = append(p.From, n.Tensor.At(source.Expr()).(*expr.Load))
	}
	for k, offset := range offsets {
		at := first.Const + offset
		if p.Picks[k] = at - begins[0]; p.Picks[k] >= width {
			p.Picks[k] = at - begins[1] + width
		}
	}
	return p
}

// offsets is the index of the first lane's element, and how far from it the lanes' elements lie; nil where that is not
// the same whatever the loops around do.
func (l *loop) offsets(n *expr.Load) (first expr.Linear, offsets []int64) {
	for k := range l.lane.Extent {
		at := expr.Linearize(expr.Simplifier{Values: map[*expr.Var]expr.Expr{l.lane: expr.I(k)}}.Simplify(n.Index[0]))
		if k == 0 {
			first = at
		}
		apart := at.Plus(first, -1)
		if len(apart.Terms) > 0 {
			return first, nil
		}
		offsets = append(offsets, apart.Const)
	}
	return first, offsets
}

// block is how many elements, a power of two and at most the lanes, make blocks that an index begins at the same place
// of, whatever the loops around do, and that a tensor ends at the end of.
func (l *loop) block(first expr.Linear, elements int64) int64 {
	block := int64(1)
	divides := func(n int64) bool {
		return elements%n == 0 && !slices.ContainsFunc(first.Terms, func(t expr.Term) bool { return t.Coef%n != 0 })
	}
	for 2*block <= l.lane.Extent && divides(2*block) {
		block *= 2
	}
	return block
}

// vectors is how wide the fewest vectors are that have so many neighbours, at most lanes each. Two may overlap.
func vectors(elements, lanes int64) (width, count int64) {
	width = 1
	for 2*width <= min(elements, lanes) {
		width *= 2
	}
	return width, (elements + width - 1) / width
}

// floor is n rounded down to a multiple.
func floor(n, multiple int64) int64 {
	return n - ((n%multiple)+multiple)%multiple
}
