package pass

import (
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/x86"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// tilesProduct is a loop over matrices that tile instructions compute.
type tilesProduct struct {
	*ir.Instruction
	format schedule.Format
	// rows holds the extents of the loops over rows of sums, outermost first, and columns that of the loop over
	// columns.
	rows    []int64
	columns int64
	a, b    tilesOperand
}

// tilesOperand is one of the factors.
type tilesOperand struct {
	tensor *expr.Tensor
	// first is the index of the first term, row and column.
	first expr.Linear
	// steps holds the stride between rows of sums for each row loop.
	steps []int64
	// rowElements is the stride between rows of a tile.
	rowElements int64
}

// tilesMatch matches a loop over matrices; either factor may supply the rows.
func tilesMatch(n *ir.For, sums *ir.Buffer, in ir.Allocated) (*tilesProduct, bool) {
	of := func(a, b array.DType) *ir.Instruction { return x86.TileProduct(n.Format, a, b) }
	for _, m := range tensorizeFactors(n, of, in, nil) {
		p := &tilesProduct{Instruction: m.Instruction, format: n.Format, columns: 1}
		if m.operands[0].tensor == sums.Tensor && p.divide(m, in) {
			return p, true
		}
	}
	return nil, false
}

// divide assigns each loop to rows or columns, and checks that sums and terms have the layout of tiles.
func (p *tilesProduct) divide(m *match, in ir.Allocated) bool {
	sums, a, b := m.operands[0].index, &m.operands[1], &m.operands[2]
	okA, okB := p.a.load(a, in), p.b.load(b, in)
	// A sum is followed by those of the next columns, and these by those of the next rows.
	behind := int64(1)
	for _, loop := range slices.Backward(m.loops[0]) {
		take(&p.a.first, loop.rest)
		take(&p.b.first, loop.rest)
		if loop.Kind == ir.Matrices {
			okA = okA && loop.rest.Extent == 1
			continue
		}
		one := loop.one()
		ofA, ofB, of := take(&a.index, one), take(&b.index, one), take(&sums, one)
		take(&sums, loop.rest)
		switch {
		case ofA == 0 && ofB == p.format.Packed() && of == 1 && behind == 1:
			p.columns = loop.Extent
		case ofA > 0 && ofB == 0 && of == behind:
			p.rows, p.a.steps = append([]int64{loop.Extent}, p.rows...), append([]int64{ofA}, p.a.steps...)
		default:
			return false
		}
		behind *= loop.Extent
	}
	if len(p.rows) == 0 {
		p.rows, p.a.steps = []int64{1}, []int64{0}
	}
	return okA && okB && len(sums.Terms) == 0 && sums.Const == 0
}

// load determines the rows that tile loads move to an operand.
func (t *tilesOperand) load(o *matched, in ir.Allocated) bool {
	tile := ir.NewTile(0, "tile", o.tensor.DType)
	place := &expr.Var{Name: "place", Extent: tile.Elements()}
	copies := ir.Nest(ir.Serial, ir.Block{&ir.Store{Buffer: tile, Index: place, Value: o.tensor.At(o.at(place))}}, place)
	in = maps.Clone(in)
	in[tile.Tensor] = tile
	found, err := tensorize(copies, x86.TileLoad(o.tensor.DType), in, nil)
	if err != nil {
		return false
	}
	from := found[0].operands[1]
	t.tensor, t.first, t.rowElements = o.tensor, from.first, from.row
	return true
}

// take removes the term of a variable from a sum and returns its coefficient, or -1 if other terms use it, too.
func take(l *expr.Linear, v *expr.Var) int64 {
	coef, linear := l.Coef(v)
	if !linear {
		return -1
	}
	if coef != 0 {
		*l = l.Plus(expr.Linearize(v), -coef)
	}
	return coef
}

// same reports whether two products have sums of the same shape.
func (p *tilesProduct) same(q *tilesProduct) bool {
	return p.format == q.format && slices.Equal(p.rows, q.rows) && p.columns == q.columns
}
