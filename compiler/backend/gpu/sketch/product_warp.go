package sketch

import (
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Place holds the loops of a tile along one axis: over warps, over the matrices of each, and over the rows or columns
// of a matrix. Each thread has two of them.
type Place struct{ Warp, Matrix, Thread, Own int }

// WarpRows divides an axis into matrices of 16 rows. Thread k of eight has rows k and k+8.
func WarpRows(b *sketch.Builder, stage, axis int, matrices int64) (p Place) {
	var inside int
	p.Warp, inside = b.Split(stage, axis, matrices*ir.MatrixRows, schedule.Peel)
	p.Matrix, inside = b.Split(stage, inside, ir.MatrixRows, schedule.Peel)
	p.Own, p.Thread = b.Split(stage, inside, ir.MatrixRows/2, schedule.Peel)
	return p
}

// WarpColumns divides an axis into matrices of 8 columns. Thread k of four has two adjacent ones.
func WarpColumns(b *sketch.Builder, stage, axis int, matrices int64) (p Place) {
	var inside int
	p.Warp, inside = b.Split(stage, axis, matrices*ir.MatrixColumns, schedule.Peel)
	p.Matrix, inside = b.Split(stage, inside, ir.MatrixColumns, schedule.Peel)
	p.Thread, p.Own = b.Split(stage, inside, 2, schedule.Peel)
	return p
}
