package sketch

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// rows is the sketch of stages that share their outer axes and reduce the others: softmax, normalisation, reductions.
// Every stage is computed row by row, so that a row that fits the cache is read from memory once.
//
//	parallel over rows
//	  for each stage but the last, producers first
//	    a reduction: partial results in acc vectors, combined in the end     rfactor
//	    a map: the row in a scratch buffer                                   unroll vectors at a time
//	  the last stage's row
//
// If the contiguous axis itself is shared, as when the channels of an image are normalised for each pixel, a row is
// acc vectors wide, and reductions need no partial results.
//
// If there are fewer rows than workers and they are long, rows are divided into pieces: each stage is a parallel nest
// of its own, and a reduction keeps a partial result for each piece.
type rows struct {
	*sketch.Rows
	RowwiseNests
	target *target.Target
}

// RowwiseParameters are the sketch's parameters.
type RowwiseParameters struct {
	// Partials is the number of vectors for a reduction's partial results, or the width of a row in vectors.
	Partials int64
	// Unroll is the number of vectors of a map that are computed at a time.
	Unroll int64
}

// NewRowwise returns the schedules of a workload, or nil if its stages do not match the sketch.
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
