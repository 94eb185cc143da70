package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Apply implements searchspace.Structure.
func (x *blocksVariant) Apply(s *schedule.Schedule, p blocksParameters) (err error) {
	defer sketch.Catch(&err)
	u := x.unit
	made := sketch.Get(s.Blockwise(u.Acc, x.form))
	n := &blocksNests{Builder: &sketch.Builder{S: s}, x: x, z: x.sizes(p), made: made}
	for _, f := range u.Feeds {
		n.Do(sketch.Settle(s, NewElementwise(s, sketch.Unit{Out: f, Acc: -1}, x.target))) // before all other stages
	}
	n.quantise()
	at := n.output()
	for _, o := range slices.Backward(u.Also) {
		n.ComputeAt(o, u.Out, at)
		n.tile(o, nil, nil)
	}
	n.ComputeAt(u.Acc, u.Out, at)
	block := n.tile(u.Acc, []int{len(x.extents)}, nil)
	n.ComputeAt(made.Partial, u.Acc, block)
	n.partial()
	n.pack()
	x.results.Apply(n.Builder, u.Out, 0)
	return nil
}

// blocksNests builds the nests of all stages.
type blocksNests struct {
	*sketch.Builder
	x    *blocksVariant
	z    blocksSizes
	made schedule.BlockwiseStages
}

// output builds the nest of the map that ends the unit. It returns the loop over tiles.
func (n *blocksNests) output() int {
	x, out, z := n.x, n.x.unit.Out, n.z
	var outer, tile []int
	rowBlock, rowTile := -1, -1
	for k := range x.column {
		if k != x.row {
			outer = append(outer, k)
		}
	}
	if x.row >= 0 {
		tiles, inside := n.Split(out, x.row, z.rows, schedule.Shift)
		rowBlock, rowTile = n.Split(out, tiles, z.rowTiles, schedule.Peel)
		tile = append(tile, inside)
	}
	strips, strip := n.Split(out, x.column, z.vectors*x.lanes, schedule.Peel)
	vectors, lane := n.Split(out, strip, x.lanes, schedule.Peel)
	tile = append(tile, vectors)
	outer = append(outer, strips)
	if x.row >= 0 {
		outer = append(outer, rowBlock)
	}
	order := slices.Clone(outer)
	if rowTile >= 0 {
		order = append(order, rowTile)
	}
	n.Do(n.S.Reorder(out, slices.Concat(order, tile, []int{lane})...))
	n.Mark(n.S.Unroll, out, tile...)
	n.Mark(n.S.Vectorize, out, lane)
	at := n.Fuse(out, outer)
	n.Mark(n.S.Parallel, out, at)
	if rowTile >= 0 {
		return rowTile
	}
	return at
}

// tile builds the nest of a stage within a tile. The loops of a reduction go outside it, the inside loops innermost
// except for the lanes. It returns the last outer loop of the reduction.
func (n *blocksNests) tile(id int, reduction, inside []int) int {
	x := n.x
	axes := len(n.S.Stages[id].Axes)
	var outer, tile []int
	for k := range axes - 1 {
		if k == x.row {
			tile = append(tile, k)
		} else {
			outer = append(outer, k)
		}
	}
	vectors, lane := n.Split(id, axes-1, x.lanes, schedule.Peel)
	tile = append(tile, vectors)
	n.Do(n.S.Reorder(id, slices.Concat(outer, reduction, tile, inside, []int{lane})...))
	n.Mark(n.S.Unroll, id, tile...)
	n.Mark(n.S.Vectorize, id, lane)
	if len(reduction) == 0 {
		return 0
	}
	return reduction[len(reduction)-1]
}

// partial builds the nest of the sums of a block.
func (n *blocksNests) partial() {
	x, id := n.x, n.made.Partial
	first := len(n.S.Stages[id].Axes)
	steps, unrolled := n.steps(id, first)
	reduction := slices.Clone(steps)
	var terms []int
	for k := 1; k < len(n.S.Stages[id].Reduce); k++ {
		if x.form == schedule.BlockIntegers && k == len(n.S.Stages[id].Reduce)-1 {
			terms = append(terms, first+k)
			continue
		}
		reduction, unrolled = append(reduction, first+k), append(unrolled, first+k)
	}
	if len(terms) > 0 {
		n.Do(n.S.Dot(id, terms[0]))
	}
	n.tile(id, reduction, terms)
	n.Mark(n.S.Unroll, id, unrolled...)
	if n.made.Weights >= 0 {
		n.halves(steps[len(steps)-1])
	}
}

// steps returns the loops over the steps of a block, and the unrolled ones.
func (n *blocksNests) steps(id, axis int) (loops, unrolled []int) {
	switch n.z.unroll {
	case 1:
		return []int{axis}, nil
	case n.z.steps:
		return []int{axis}, []int{axis}
	}
	outer, inner := n.Split(id, axis, n.z.unroll, schedule.Peel)
	return []int{outer, inner}, []int{inner}
}

// halves unpacks the bytes of a step.
func (n *blocksNests) halves(at int) {
	id := n.made.Weights
	n.ComputeAt(id, n.made.Partial, at)
	vectors, lane := n.Split(id, 2, 4*n.x.lanes, schedule.Peel)
	n.Mark(n.S.Unroll, id, 1, vectors)
	n.Mark(n.S.Vectorize, id, lane)
}

// pack lays the constants out in the order of tiles.
func (n *blocksNests) pack() {
	x, width := n.x, n.z.vectors*n.x.lanes
	columns := width
	if x.form == schedule.BlockIntegers {
		columns *= 4
	}
	n.Do(n.S.Pack(x.product.Constant, []schedule.PackDim{{Dim: 1, Factor: columns}, {Dim: 0}, {Dim: 1, Factor: columns, Inner: true}}))
	if n.z.prefetch > 0 {
		n.Do(n.S.Prefetch(x.product.Constant, n.z.prefetch))
	}
	for _, p := range x.product.Parameters {
		if p.ColumnDim < 0 {
			continue
		}
		dims := []schedule.PackDim{{Dim: p.ColumnDim, Factor: width}}
		for d := range n.S.Workload.Constants[p.Constant].Shape {
			if d != p.ColumnDim {
				dims = append(dims, schedule.PackDim{Dim: d})
			}
		}
		n.Do(n.S.Pack(p.Constant, append(dims, schedule.PackDim{Dim: p.ColumnDim, Factor: width, Inner: true})))
	}
}

// quantise builds the nests of the stages that quantise data, each before all other stages.
func (n *blocksNests) quantise() {
	if n.made.Data < 0 {
		return
	}
	n.sums(n.made.Peak)
	n.vectorized(n.made.Inverse)
	n.vectorized(n.made.Data)
	if n.made.Total >= 0 {
		n.sums(n.made.Total)
		n.vectorized(n.made.Offset)
	}
}

// parallelElements is the minimum number of data elements for a parallel region.
const parallelElements = 1 << 16

// sums reduces the elements of each group, lanes first.
func (n *blocksNests) sums(id int) {
	g := n.S.Stages[id]
	axes := sketch.Axes(len(g.Axes))
	rows := &RowwiseNests{Lanes: n.x.lanes, Dims: map[int][]int{id: axes}}
	partials := rows.Reduce(n.Builder, g, 0, RowwiseParameters{Partials: 1})
	at := n.Fuse(id, axes)
	if array.Elements(g.Tensor.Shape)*n.z.terms >= parallelElements && n.x.rows() > 1 {
		n.Mark(n.S.Parallel, id, at)
	}
	for _, p := range partials {
		n.ComputeAt(p, id, at)
	}
}

// vectorized computes a map in vectors along its last axis.
func (n *blocksNests) vectorized(id int) {
	g := n.S.Stages[id]
	last := len(g.Axes) - 1
	_, lane := n.Split(id, last, n.x.lanes, schedule.Peel)
	n.Mark(n.S.Vectorize, id, lane)
	if last > 0 && array.Elements(g.Tensor.Shape) >= parallelElements && n.x.rows() > 1 {
		n.Mark(n.S.Parallel, id, n.FuseAxes(id, last))
	}
}
