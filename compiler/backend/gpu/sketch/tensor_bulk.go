package sketch

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/machine"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/space"
)

// bulk is the choice between copies by all threads and copies of boxes, where any format has both.
func bulk(variants []space.Variant[tensorParameters]) space.Parameter[tensorParameters] {
	values := []int64{0}
	for _, v := range variants {
		if v.Structure.(*tensorTile).boxed() && len(values) == 1 {
			values = append(values, 1)
		}
	}
	return sketch.Knob("bulk", func(p *tensorParameters) *int64 { return &p.bulk }, values...)
}

// boxed reports whether boxes of an operand can be copied ahead; others are copied by all threads beside them.
func (p *tensorTile) boxed() bool {
	return p.format.Warpgroup() && p.MostStages(vectorElements) > 1 && (p.Boxed(p.Operands[0]) || p.Boxed(p.Operands[1]))
}

// boxes says why no operand is copied as boxes where one is to be.
func (p *tensorTile) boxes(q tensorParameters) error {
	switch {
	case q.bulk == 0:
		return nil
	case !p.boxed():
		return fmt.Errorf("space: operands are no boxes of tensors")
	case q.stages < 2:
		return fmt.Errorf("space: boxes are copied ahead, for two steps at least")
	}
	for _, o := range p.Operands {
		if n := p.linesOf(o, q); p.Boxed(o) && n > ir.MapBox {
			return fmt.Errorf("space: a box is %d long, more than %d", n, ir.MapBox)
		}
	}
	return nil
}

// linesOf is how many lines of an operand a block reads.
func (p *tensorTile) linesOf(o Operand, q tensorParameters) int64 {
	if p.lines(o) == p.Axes[p.Columns] {
		return p.box(q).Columns
	}
	return p.box(q).Rows
}

const (
	// copyShare is the share of the time that threads take for copies in which they begin no products.
	copyShare = 1.0 / 8
	// boxOperations is what one thread issues for each panel of a step, boxLatency how much longer boxes take to come.
	boxOperations, boxLatency = 20.0, 150.0
)

// copying is the cycles that a step takes to begin its copies, and those from there until they have come.
func (p *tensorTile) copying(q tensorParameters) (issued, latency float64) {
	box, latency := p.box(q), machine.Latency
	for _, o := range p.Operands {
		if q.bulk == 0 || !p.Boxed(o) {
			issued += float64(p.Copies(o, box, p.fetching(q))) * tensorCopyOperations / machine.Lanes
			continue
		}
		wide := box.Depth
		if turned, _ := p.turned(o); turned {
			wide = p.linesOf(o, q)
		}
		issued += float64(sketch.CeilDiv(wide*o.Load.DType().Bytes(), panelBytes)) * boxOperations / machine.Lanes
		latency = machine.Latency + boxLatency
	}
	return issued, latency
}
