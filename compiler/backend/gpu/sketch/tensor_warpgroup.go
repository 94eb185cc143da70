package sketch

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/cost"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
)

// goodOfWarpgroups lists tiles for products of many results, of some, and of few.
var goodOfWarpgroups = []tensorParameters{
	{tall: 2, wide: 1, rows: 1, columns: 32, depth: 4, stages: 4, parts: 1, tma: 1},
	{tall: 2, wide: 1, rows: 1, columns: 32, depth: 4, stages: 4, parts: 1, scheduler: streamK, tma: 1},
	{tall: 2, wide: 1, rows: 1, columns: 16, depth: 4, stages: 4, parts: 1, tma: 1},
	{tall: 1, wide: 1, rows: 1, columns: 16, depth: 4, stages: 4, parts: 1, tma: 1},
	{tall: 1, wide: 1, rows: 1, columns: 4, depth: 4, stages: 5, parts: 1, tma: 1},
}

// fitsWarpgroups reports whether a GPU has warpgroup instructions, both operands are matrices of lines and terms in a
// supported layout, and results have the columns of the narrowest instruction.
func (p *tensorTile) fitsWarpgroups() bool {
	if p.Extents[p.Columns] <= nvidia.MatrixColumns {
		return false
	}
	for k, r := range p.Reduce {
		if k != p.Step && r.Extent > 1 {
			return false
		}
	}
	_, a := p.turned(p.Operands[0])
	_, b := p.turned(p.Operands[1])
	same := p.Operands[0].Load.DType().Bytes() == p.Operands[1].Load.DType().Bytes()
	return p.GPU.Warpgroups() && a && b && same && p.Group == 0
}

// lines returns the axis of an operand's lines.
func (p *tensorTile) lines(o Operand) *expr.Var {
	if expr.Uses(o.Load, p.Axes[p.Rows]) {
		return p.Axes[p.Rows]
	}
	return p.Axes[p.Columns]
}

// turned reports whether lines of an operand rather than terms are contiguous in shared memory. ok is false if
// neither are, or if instructions do not support that for the element size.
func (p *tensorTile) turned(o Operand) (turned, ok bool) {
	lines, terms := p.lines(o), p.Reduce[p.Step]
	for _, x := range o.Load.Index {
		if _, plain := x.(*expr.Var); !plain && (expr.Uses(x, lines) || expr.Uses(x, terms)) {
			return false, false
		}
	}
	switch o.Load.Index[len(o.Load.Index)-1] {
	case expr.Expr(terms):
		return false, true
	case expr.Expr(lines):
		if p.Exchanges(o) {
			return false, true
		}
		return true, o.Load.DType().Bytes() == 2
	}
	return false, false
}

// The maximum contiguous bytes of a row in shared memory, and the bytes of an instruction's terms.
const (
	panelBytes = 128
	termBytes  = 32
)

// legalForWarpgroups returns an error for what warp instructions support and warpgroup instructions do not.
func (p *tensorTile) legalForWarpgroups(q tensorParameters) error {
	columns := q.columns * nvidia.MatrixColumns
	switch {
	case !nvidia.WarpgroupColumns(columns):
		return fmt.Errorf("space: a warpgroup has no instruction for %d columns", columns)
	case q.depth*termBytes > panelBytes || q.depth*termBytes == 96:
		return fmt.Errorf("space: %d terms are more than a warpgroup finds side by side", p.box(q).Depth)
	}
	for _, o := range p.Operands {
		side := p.lines(o) == p.Axes[p.Columns]
		if turned, _ := p.turned(o); turned && side && q.wide > 1 && columns*o.Load.DType().Bytes()%panelBytes != 0 {
			return fmt.Errorf("space: %d columns of a warpgroup begin where it cannot read them", columns)
		}
	}
	return nil
}

// productWait is the cycles between the end of products and the start of the next ones, for threads that wait for the
// end.
const productWait = 120.0

// costOfWarpgroups is like the cost of warps, but products overlap with the threads' fetches for later steps.
func (p *tensorTile) costOfWarpgroups(q tensorParameters) float64 {
	box := p.box(q)
	_, terms := p.Steps(box)
	groups := float64(q.tall * q.wide)
	columns := float64(q.columns * nvidia.MatrixColumns)
	bits := 32 / float64(p.format.Packed())
	instructions := groups * float64(q.rows) * float64(terms/p.format.Terms())
	tensor := instructions * nvidia.WarpgroupRows * columns * float64(p.format.Terms()) * bits / cost.GroupBits
	fetched := float64(p.FetchedBytes(box))
	shared := (instructions*(nvidia.WarpgroupRows+columns)*termBytes + fetched) / cost.GroupBytes
	issued, latency := p.copyCost(q)
	l := p.Launch(q.scheduler, box, q.stages, p.resident(q))
	work := max(tensor, shared, issued, p.Traffic(q.scheduler, box, l)) + issued*copyShare
	ahead, products := float64(q.stages-1), productWait
	if q.stages > 2 {
		ahead, products = ahead-1, 0
	}
	wait := max(0, latency-ahead*work) + products
	return p.Cycles(l, box, work, wait)
}
