package pass

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// layout is where sums lie that tiles store: like the buffer that they are computed in, with rows as long as whole
// tiles, and as many of them.
type layout struct {
	buffer *ir.Buffer
	// rows are the extents of the rows, outermost first, and columns that of the columns.
	rows    []int64
	columns int64
	// steps are how far rows are apart, for each extent, and before is how far they were in the buffer that was meant.
	steps, before []int64
}

// layoutOf is the layout of a buffer of sums; ok is false where it has others than those of the product.
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

// tileRows and tileColumns are how many tiles there are in either direction.
func (l *layout) tileRows() int64 {
	last := len(l.rows) - 1
	return array.Elements(l.rows[:last]) * whole(l.rows[last], schedule.TileRows) / schedule.TileRows
}

func (l *layout) tileColumns() int64 {
	return whole(l.columns, schedule.TileColumns) / schedule.TileColumns
}

// rowsBeyond and columnsBeyond are how many the last tile in either direction has that are no sums'.
func (l *layout) rowsBeyond() int64 {
	last := l.rows[len(l.rows)-1]
	return whole(last, schedule.TileRows) - last
}

func (l *layout) columnsBeyond() int64 { return whole(l.columns, schedule.TileColumns) - l.columns }

// rowElements is how far the rows of a tile are apart.
func (l *layout) rowElements() int64 { return l.steps[len(l.steps)-1] }

// rowsOf is where the rows of tiles begin in something whose rows are so far apart.
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

// columnsOf is where the columns of tiles begin in something whose columns are so far apart.
func (l *layout) columnsOf(step int64) (at []int64) {
	for n := range l.tileColumns() {
		at = append(at, n*step*schedule.TileColumns)
	}
	return at
}

// moved is where a sum lies that was meant to lie at an index; ok is false where its row and column cannot be told.
func (l *layout) moved(index expr.Expr) (at expr.Expr, ok bool) {
	parts := make([]expr.Linear, len(l.rows)+1) // rows, and the column behind them
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
