package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Joined returns the product whose rows are the positions of two axes, such as those of an image. It returns nil if
// the axes are not adjacent, no operand has both, or another output is computed from the sums, which would keep its
// own axes.
func (p *Product) Joined() *Product {
	before := p.Rows - 1
	if before < 0 || p.Extents[before] < 2 || len(p.Unit.Also) > 0 {
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

// Positions fuses the rows of the reduction into one axis. It precedes other primitives on the reduction.
func (p *Product) Positions(b *sketch.Builder) {
	if p.Joint && b.Err == nil {
		b.Do(b.S.Flatten(p.Unit.Acc, p.Rows-1, p.Rows))
	}
}

// RowsOf returns the iterator over the rows of the stage that stores the results.
func (p *Product) RowsOf(b *sketch.Builder) int {
	if !p.Joint {
		return p.Rows
	}
	return b.Fuse(p.Unit.Out, []int{p.Rows - 1, p.Rows})
}
