package sketch

import (
	"github.com/tilth-dev/tilth/compiler/backend/gpu/cost"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Divisions returns the numbers of parts that sums can be divided into with at least the given number of terms each.
// Split sums fill a GPU with blocks when results are few and sums long.
func (p *Product) Divisions(floor int64) []int64 {
	list := []int64{1}
	extent := p.Reduce[p.Step].Extent
	for _, n := range []int64{2, 4, 8, 16, 32, 64} {
		if extent%n == 0 && extent/n >= floor {
			list = append(list, n)
		}
	}
	return list
}

// Divided returns the product of partial sums: each of the parts of a sum is a result, in a launch before the one
// that adds them up, always in the same order.
func (p *Product) Divided(b *sketch.Builder, parts int64) *Product {
	partial := sketch.Get(b.S.RFactor(p.Unit.Acc, p.Step, p.Reduce[p.Step].Extent/parts, schedule.Planes))
	acc := sketch.Get(b.S.CacheWrite(partial))
	g, d := b.S.Stages[acc], *p
	d.Unit = sketch.Unit{Out: partial, Acc: acc, Feeds: p.Unit.Feeds}
	d.Extents, d.Axes, d.Reduce = g.Tensor.Shape, g.Axes, g.Reduce
	d.Rows, d.Columns = p.Rows+1, p.Columns+1
	d.Operands = nil
	for _, o := range p.Operands {
		for _, l := range expr.Loads(g.Body) {
			if l.Tensor == o.Load.Tensor {
				d.Operands = append(d.Operands, Operand{Load: l, feed: o.feed, copied: o.copied, given: o.given})
			}
		}
	}
	if d.Joint {
		d.join()
	}
	return &d
}

// AddUp makes each thread add up the parts of a result.
func (p *Product) AddUp(b *sketch.Builder) {
	const threads = 128
	u := p.Unit
	u.Feeds = nil
	Results(b, u, len(p.Extents), threads, 1)
}

// addUpCost returns the overhead of dividing sums in cycles: another launch, and writing and reading the parts.
func (p *Product) addUpCost(parts int64) float64 {
	if parts < 2 {
		return 0
	}
	bytes := 2 * parts * sketch.Product(p.Extents) * p.Bytes
	return cost.LaunchCycles + float64(bytes)/cost.GlobalBytes/float64(p.GPU.Multiprocessors)
}
