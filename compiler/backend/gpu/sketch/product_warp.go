package sketch

import (
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Place is the loops of a tile along one axis: over warps, over the matrices of each, and over the rows or columns of
// a matrix, of which a thread has two.
type Place struct{ Warp, Matrix, Thread, Own int }

// WarpRows cuts an axis whose matrices are 16 long: thread k of eight has row k and the one eight behind it.
func WarpRows(b *sketch.Builder, stage, axis int, matrices int64) (p Place) {
	var inside int
	p.Warp, inside = b.Split(stage, axis, matrices*ir.MatrixRows, schedule.Peel)
	p.Matrix, inside = b.Split(stage, inside, ir.MatrixRows, schedule.Peel)
	p.Own, p.Thread = b.Split(stage, inside, ir.MatrixRows/2, schedule.Peel)
	return p
}

// WarpColumns cuts an axis whose matrices are 8 long: thread k of four has two neighbours.
func WarpColumns(b *sketch.Builder, stage, axis int, matrices int64) (p Place) {
	var inside int
	p.Warp, inside = b.Split(stage, axis, matrices*ir.MatrixColumns, schedule.Peel)
	p.Matrix, inside = b.Split(stage, inside, ir.MatrixColumns, schedule.Peel)
	p.Thread, p.Own = b.Split(stage, inside, 2, schedule.Peel)
	return p
}
