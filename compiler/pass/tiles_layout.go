package pass

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// layout describes the sums that tiles store: the layout of the original buffer with rows and columns rounded up to
// whole tiles.
type layout struct {
	buffer *ir.Buffer
	// rows holds the extents of the rows, outermost first, and columns that of the columns.
	rows    []int64
	columns int64
	// steps holds the row strides for each extent, and before those of the original buffer.
	steps, before []int64
}

// layoutOf returns the layout of a buffer of sums; ok is false if it differs from that of the product.
func layoutOf(sums *ir.Buffer, p *tilesProduct) (l *layout, ok bool) {
	l = &layout{rows: p.rows, columns: p.columns, steps: make([]int64, len(p.rows)), before: make([]int64, len(p.rows))}
	step, before := whole(p.columns, schedule.TileColumns), p.columns
	for k := len(p.rows) - 1; k >= 0; k-- {
		l.steps[k], l.before[k] = step, before
		rows := p.rows[k]
		if k == len(p.rows)-1 {
			rows = whole(rows, schedule.TileRows)
		}
		step, before = step*rows, before*p.rows[k]
	}
	if before != sums.Elements() || sums.Steps > 0 || l.tileRows()*l.tileColumns() >= schedule.TileRegisters {
		return nil, false
	}
	l.buffer = &ir.Buffer{Tensor: ir.Flat(sums.Tensor.Name, sums.Tensor.DType, step), Space: ir.Scratch}
	return l, true
}

func whole(n, tile int64) int64 { return (n + tile - 1) / tile * tile }

// tileRows and tileColumns return the number of tiles in each direction.
func (l *layout) tileRows() int64 {
	last := len(l.rows) - 1
	return array.Elements(l.rows[:last]) * whole(l.rows[last], schedule.TileRows) / schedule.TileRows
}

func (l *layout) tileColumns() int64 {
	return whole(l.columns, schedule.TileColumns) / schedule.TileColumns
}

// rowsBeyond and columnsBeyond return the excess of the last tile in each direction.
func (l *layout) rowsBeyond() int64 {
	last := l.rows[len(l.rows)-1]
	return whole(last, schedule.TileRows) - last
}

func (l *layout) columnsBeyond() int64 { return whole(l.columns, schedule.TileColumns) - l.columns }

// rowElements returns the stride between rows of a tile.
func (l *layout) rowElements() int64 { return l.steps[len(l.steps)-1] }

// rowsOf returns the starts of the tile rows for the given strides.
func (l *layout) rowsOf(steps []int64) []int64 {
	at := []int64{0}
	for k, extent := range l.rows {
		step, count := steps[k], extent
		if k == len(l.rows)-1 {
			step, count = step*schedule.TileRows, whole(extent, schedule.TileRows)/schedule.TileRows
		}
		var next []int64
		for _, x := range at {
			for n := range count {
				next = append(next, x+n*step)
			}
		}
		at = next
	}
	return at
}

// columnsOf returns the starts of the tile columns for the given stride.
func (l *layout) columnsOf(step int64) (at []int64) {
	for n := range l.tileColumns() {
		at = append(at, n*step*schedule.TileColumns)
	}
	return at
}

// moved maps an index of the original buffer to the layout; ok is false if its row and column cannot be separated.
func (l *layout) moved(index expr.Expr) (at expr.Expr, ok bool) {
	parts := make([]expr.Linear, len(l.rows)+1) // rows, followed by the column
	add := func(coef int64, term expr.Linear) {
		for k, step := range l.before {
			if coef >= step {
				parts[k], coef = parts[k].Plus(term, coef/step), coef%step
			}
		}
		parts[len(l.rows)] = parts[len(l.rows)].Plus(term, coef)
	}
	given := expr.Linearize(index)
	add(given.Const, expr.Linear{Const: 1})
	for _, t := range given.Terms {
		if t.Coef < 0 {
			return nil, false
		}
		add(t.Coef, expr.Linearize(t.Atom))
	}
	var sum expr.Linear
	for k, part := range parts {
		extent, step := l.columns, int64(1)
		if k < len(l.rows) {
			extent, step = l.rows[k], l.steps[k]
		}
		lowest, highest, known := part.Bounds()
		if !known || lowest < 0 || highest >= extent {
			return nil, false
		}
		sum = sum.Plus(part, step)
	}
	return sum.Expr(), true
}
