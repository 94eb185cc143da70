package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// panel is a non-constant operand of a reduction that all positions of a tile share: the right side of a matrix
// product. It can be copied, for all positions of a block, into a panel of a tile's width that is read sequentially.
type panel struct {
	tensor *expr.Tensor
	// access is the operand's index in Tile.accesses.
	access int
	// order lists the operand's dimensions, that of the vectors last.
	order []int
	// strided is set if neighbouring lanes are not contiguous in the operand, so that lanes are gathered, or squares
	// of lanes are transposed.
	strided bool
	// rows is the dimension of the panel that is contiguous in the operand and forms squares with the lanes, or -1.
	rows int
}

// findPanels finds the operands that can be copied. Operands that feed the reduction are already computed in place.
func (x *Tile) findPanels(s *schedule.Schedule, acc *schedule.Stage) {
	for k, l := range expr.Loads(acc.Body) {
		a := &x.accesses[k]
		at := slices.Index(l.Index, expr.Expr(acc.Axes[x.vec]))
		fixed := !a.MovesWith(x.col) && !a.MovesWith(x.row)
		if l.Tensor.Role == expr.Constant || s.Producer(l.Tensor) != nil || at < 0 || !fixed || !a.MovesWithAny(len(acc.Axes), len(acc.Axes)+len(acc.Reduce)) {
			continue
		}
		if slices.ContainsFunc(x.panels, func(p panel) bool { return p.tensor == l.Tensor }) {
			continue
		}
		p := panel{tensor: l.Tensor, access: k, strided: !sketch.Adjacent(l, acc.Axes[x.vec])}
		for d := range l.Tensor.Shape {
			if d != at {
				p.order = append(p.order, d)
			}
		}
		p.order = append(p.order, at)
		p.rows = p.neighbours()
		x.panels = append(x.panels, p)
	}
}

// neighbours returns the dimension of the panel, other than the vectors', that is contiguous in the operand, or -1.
func (p *panel) neighbours() int {
	strides := p.tensor.MemoryStrides()
	for k, d := range p.order[:len(p.order)-1] {
		if strides[d] == 1 && p.tensor.Shape[d] > 1 {
			return k
		}
	}
	return -1
}

// applyPanels copies the panels at the loop over the block's vectors of tiles.
func (x *Tile) applyPanels(b *sketch.Builder, u sketch.Unit, l loops) {
	for _, p := range x.panels {
		var tensors []*expr.Tensor
		for _, load := range expr.Loads(b.S.Stages[u.Acc].Body) {
			if !slices.Contains(tensors, load.Tensor) {
				tensors = append(tensors, load.Tensor)
			}
		}
		id := sketch.Get(b.S.CacheRead(u.Acc, slices.Index(tensors, p.tensor), p.order))
		vectors, lane := b.Split(id, len(p.order)-1, x.lanes, schedule.Peel)
		if p.strided && p.rows >= 0 {
			x.square(b, id, p, vectors, lane)
		}
		b.Mark(b.S.Vectorize, id, lane)
		b.ComputeAt(id, u.Out, l.vectors)
	}
}

// square unrolls as many neighbours of the operand as there are lanes, so that each square of both is transposed in
// registers.
func (x *Tile) square(b *sketch.Builder, id int, p panel, vectors, lane int) {
	squares, row := b.Split(id, p.rows, x.lanes, schedule.Peel)
	var order []int
	for k := range p.order[:len(p.order)-1] {
		if k != p.rows {
			order = append(order, k)
		}
	}
	b.Do(b.S.Reorder(id, append(order, squares, vectors, row, lane)...))
	b.Mark(b.S.Unroll, id, row)
}

// packed returns the accesses after the panels are copied.
func (x *Tile) packed() []cost.Access {
	list := slices.Clone(x.accesses)
	for _, p := range x.panels {
		list[p.access].Packed = true
	}
	return list
}

// copyCycles returns the cycles of copying the panels: per pair of vectors if they are contiguous, per transposed
// square, or per lane.
func (x *Tile) copyCycles(t *target.Target, n *Nest) float64 {
	times := 1.0
	for _, loop := range n.Loops[2:] { // the first two loops run over the positions of a block
		times *= float64(loop.Times)
	}
	total := 0.0
	for _, p := range x.panels {
		a := &x.accesses[p.access]
		elements := a.Elements(n.spread(n.Tile))
		switch {
		case p.strided && p.rows >= 0:
			total += 0.5 * elements
		case p.strided:
			total += 1.3 * elements
		default:
			total += 3 * microarch.Wide(t) * elements / float64(x.lanes)
		}
	}
	return times * total
}
