package sketch

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/cost"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// tmaKnob returns the knob that selects between cooperative and TMA copies, if any format has both.
func tmaKnob(variants []searchspace.Variant[tensorParameters]) searchspace.Parameter[tensorParameters] {
	values := []int64{0}
	for _, v := range variants {
		if v.Structure.(*tensorTile).supportsTMA() && len(values) == 1 {
			values = append(values, 1)
		}
	}
	return sketch.Knob("bulk", func(p *tensorParameters) *int64 { return &p.tma }, values...)
}

// supportsTMA reports whether TMA can copy boxes of an operand ahead. All threads copy other operands cooperatively.
func (p *tensorTile) supportsTMA() bool {
	return p.format.Warpgroup() && p.MaxStages(vectorElements) > 1 && (p.SupportsTMA(p.Operands[0]) || p.SupportsTMA(p.Operands[1]))
}

// legalForTMA returns an error if no operand can be copied by TMA but one should be.
func (p *tensorTile) legalForTMA(q tensorParameters) error {
	switch {
	case q.tma == 0:
		return nil
	case !p.supportsTMA():
		return fmt.Errorf("space: operands cannot be copied by TMA")
	case q.stages < 2:
		return fmt.Errorf("space: boxes are copied ahead, for two steps at least")
	}
	for _, o := range p.Operands {
		if n := p.linesOf(o, q); p.SupportsTMA(o) && n > nvidia.MapBox {
			return fmt.Errorf("space: a box is %d long, more than %d", n, nvidia.MapBox)
		}
	}
	return nil
}

// linesOf returns how many lines of an operand a block reads.
func (p *tensorTile) linesOf(o Operand, q tensorParameters) int64 {
	if p.lines(o) == p.Axes[p.Columns] {
		return p.box(q).Columns
	}
	return p.box(q).Rows
}

const (
	// copyShare is the fraction of the copy time in which threads start no products.
	copyShare = 1.0 / 8
	// boxOperations is the number of instructions that one thread issues for each panel of a step, boxLatency the
	// additional latency of TMA copies.
	boxOperations, boxLatency = 20.0, 150.0
)

// copyCost returns the cycles in which a step starts its copies, and the latency until they arrive.
func (p *tensorTile) copyCost(q tensorParameters) (issued, latency float64) {
	box, latency := p.box(q), cost.Latency
	for _, o := range p.Operands {
		if q.tma == 0 || !p.SupportsTMA(o) {
			issued += float64(p.Copies(o, box, p.fetching(q))) * copyOperations / cost.Lanes
			continue
		}
		wide := box.Depth
		if turned, _ := p.turned(o); turned {
			wide = p.linesOf(o, q)
		}
		issued += float64(sketch.CeilDiv(wide*o.Load.DType().Bytes(), panelBytes)) * boxOperations / cost.Lanes
		latency = cost.Latency + boxLatency
	}
	return issued, latency
}
