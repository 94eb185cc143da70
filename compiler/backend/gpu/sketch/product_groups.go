package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// divided returns the axis and the divisor of an index that is a quotient, as for the channels of a grouped
// convolution: neighbouring results of a group read the same elements.
func divided(e expr.Expr) (axis *expr.Var, by int64, ok bool) {
	n, isBinary := e.(*expr.Binary)
	if !isBinary || n.Op != expr.FloorDiv {
		return nil, 0, false
	}
	axis, isVar := n.A.(*expr.Var)
	k, isInt := n.B.(*expr.Int)
	if !isVar || !isInt || k.Value < 1 {
		return nil, 0, false
	}
	return axis, k.Value, true
}

// GroupOf returns how many adjacent columns share elements of an operand, or 0 if its index has no quotient.
func (p *Product) GroupOf(o Operand) int64 {
	for _, x := range o.Load.Index {
		for _, t := range expr.Linearize(x).Terms {
			if axis, by, ok := divided(t.Atom); ok && axis == p.Axes[p.Columns] {
				return by
			}
		}
	}
	return 0
}

// values returns how many values a part of an index takes in the given ranges of its variables, which divide the axes
// equally. It returns one for anything but a variable or a quotient of one, such as the blocks of terms in a part of
// a sum.
func values(e expr.Expr, ranges map[*expr.Var]int64) int64 {
	if v, ok := e.(*expr.Var); ok {
		return ranges[v]
	}
	axis, by, ok := divided(e)
	if !ok { // a part of a sum may start anywhere: no vectors of its terms are known to be whole
		return 1
	}
	n := ranges[axis]
	switch {
	case n%by == 0:
		return n / by
	case by%n == 0:
		return 1
	}
	return min((n-1)/by+2, (axis.Extent-1)/by+1)
}

// Alike returns how many of the given number of adjacent columns, from a multiple of it on, read the same elements of
// an operand.
func (p *Product) Alike(o Operand, columns int64) int64 {
	by := p.GroupOf(o)
	switch {
	case !p.Reads(o, p.Columns):
		return columns
	case by == 0:
		return 1
	case columns%by == 0 || by%columns == 0:
		return min(columns, by)
	}
	return max(1, min(columns, by)/2)
}

// WholeGroups reports whether the given number of columns is a multiple or a divisor of a group.
func (p *Product) WholeGroups(columns int64) bool {
	return p.Group == 0 || columns%p.Group == 0 || p.Group%columns == 0
}

// Joined returns the product whose rows are the positions of two axes, such as those of an image. It returns nil if
// the axes are not adjacent, no operand has both, or another output is computed from the sums, which would keep its
// own axes.
func (p *Product) Joined() *Product {
	before := p.Rows - 1
	if before < 0 || p.Extents[before] < 2 || len(p.Unit.Also) > 0 || p.Axes[p.Rows].Limit != nil {
		return nil
	}
	for _, o := range p.Operands {
		if expr.Uses(o.Load, p.Axes[before]) != expr.Uses(o.Load, p.Axes[p.Rows]) {
			return nil
		}
	}
	j := *p
	j.join()
	return &j
}

func (p *Product) join() {
	p.Joint, p.Extents = true, slices.Clone(p.Extents)
	p.Extents[p.Rows] *= p.Extents[p.Rows-1]
	p.Extents[p.Rows-1] = 1
}

// RowsOf returns the iterator over the rows of the stage that stores the results.
func (p *Product) RowsOf(b *sketch.Builder) int {
	if !p.Joint {
		return p.Rows
	}
	return b.Fuse(p.Unit.Out, []int{p.Rows - 1, p.Rows})
}
