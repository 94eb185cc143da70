// Rowwise is the sketch of stages that are computed row by row: softmax, normalisation, reductions.

package sketch

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// rows is the sketch of stages that share their outer axes and reduce along the others: softmax, normalisation,
// reductions. Every stage is computed row by row, so that a row is read from memory once while it fits the cache.
//
//	parallel over rows
//	  for each stage but the last, producers first
//	    a reduction: partial results in acc vectors, combined in the end     rfactor
//	    a map: the row in a scratch buffer                                   unroll vectors at a time
//	  the last stage's row
//
// Where the contiguous axis is itself shared, as when the channels of an image are normalised for each pixel, a row is
// as many vectors wide as acc says, and reductions need no partial results.
//
// Rows that are too few for the workers and long are cut into pieces: each stage is a parallel nest of its own, and a
// reduction keeps a partial result for each piece.
type rows struct {
	*sketch.Rows
	RowwiseNests
	target *target.Target
}

// RowwiseParameters are the numbers that the sketch leaves open.
type RowwiseParameters struct {
	// Partials is how many vectors hold a reduction's partial results, or how many vectors wide a row is.
	Partials int64
	// Unroll is how many vectors of a map are computed at a time.
	Unroll int64
}

// NewRowwise is the schedules of a workload; nil when its stages do not follow the sketch.
func NewRowwise(w *expr.Workload, t *target.Target) *sketch.Whole {
	r := newRows(w, t)
	if r == nil {
		return nil
	}
	return &sketch.Whole{Out: r.Out, Inline: r.Inline, Family: r.family()}
}

func newRows(w *expr.Workload, t *target.Target) *rows {
	m := sketch.MatchRows(w)
	if m == nil {
		return nil
	}
	return &rows{m, RowwiseNests{Lanes: max(1, int64(t.CPU.VectorBytes)/m.Widest), Dims: m.Dims}, t}
}
