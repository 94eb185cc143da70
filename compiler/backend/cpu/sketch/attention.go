package sketch

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// attention is the sketch of softmax attention, two products with a row softmax between them. A block of rows goes
// through all stages while its scores are in the cache. The scores never become a tensor in memory.
//
//	[keys and values, laid out as the products read them]        on their own, or for each batch
//	parallel over batches (and blocks of rows)
//	  block of rows
//	    masked = scores of the block, th x tv vectors at a time  accumulators in registers
//	      or, of few rows, one by one, along their terms
//	    largest, exp, sum, total                                 row by row, vectors along the row
//	    out = mixed values, th x tv vectors at a time            accumulators in registers
type attention struct {
	*sketch.Attention
	target *target.Target
	lanes  int64
	// along is set if the terms of a score are contiguous in the keys, so that they can be lanes.
	along bool
	// rolled keeps the loops over the rows of a tile instead of unrolling them.
	rolled bool
}

// attentionParameters are the sketch's parameters.
type attentionParameters struct {
	// rows x vectors is the register tile of both products.
	rows, vectors int64
	// block is the number of rows per block.
	block int64
	// unroll is the number of unrolled steps of a product.
	unroll int64
	// keys and values select where the operands are laid out anew.
	keys, values int64
}

// NewAttention returns the schedules of a workload with the products that numerics allow, or nil if it is not
// attention.
func NewAttention(w *expr.Workload, t *target.Target, numerics schedule.Numerics) *sketch.Whole {
	a := newAttention(w, t)
	if a == nil {
		return nil
	}
	var m *attentionMatrices
	if numerics >= schedule.Fast {
		m = a.inMatrices(schedule.New(w))
	}
	return &sketch.Whole{Out: a.Out, Family: a.family(m)}
}

func newAttention(w *expr.Workload, t *target.Target) *attention {
	found := sketch.MatchAttention(w)
	if found == nil {
		return nil
	}
	s := schedule.New(w)
	lanes := int64(t.CPU.VectorBytes) / s.Stages[found.Mixed].Tensor.DType.Bytes()
	a := &attention{Attention: found, target: t, lanes: max(1, lanes)}
	a.along = found.Keys >= 0 && found.D >= 2*a.lanes && a.lanes > 1 && termsAreNeighbours(s.Stages[found.Keys])
	return a
}

// termsAreNeighbours reports whether keys are stored row by row, with contiguous terms of a score.
func termsAreNeighbours(keys *schedule.Stage) bool {
	terms := keys.Axes[len(keys.Axes)-2]
	return sketch.Adjacent(expr.Loads(keys.Body)[0], terms)
}
