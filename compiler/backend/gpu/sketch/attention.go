package sketch

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// attention is the sketch of softmax attention on a GPU (Dao, "FlashAttention-2", 2023). A block of threads computes
// a tile of rows while it reads keys and values piece by piece, so that scores never reach global memory. Results are
// distributed over the threads' registers in the layout of matrix instructions, even if those do not multiply.
//
//	blocks over batches and tiles of rows
//	  queries of the tile                      shared
//	  for each piece of the keys
//	    keys and values of the piece           shared, fetched ahead
//	    scores of the tile                     registers
//	    masked, exponentials                   shared
//	    largest score and sum of each row      by a few threads a row
//	    mixed = mixed * change + exponentials x values    registers
//	  out = mixed / sums
type attention struct {
	*sketch.Attention
	gpu *target.GPU
	// bytes is the element size of queries, keys and values, wide that of scores and results.
	bytes, wide int64
	// matrices is set if matrix instructions of a format multiply.
	matrices bool
	format   schedule.Format
	// terms is the minimum number of terms per instruction.
	terms int64
}

// attentionParameters are the sketch's parameters.
type attentionParameters struct {
	// tall and wide are the warps of a block along rows and along keys or columns, rows the number of 16-row matrices
	// of each.
	tall, wide, rows int64
	// piece is the number of keys per piece.
	piece int64
	// stages is the depth of the pipeline: the number of pieces whose keys and values are in shared memory or in
	// flight.
	stages int64
}

// NewAttention returns the schedules of a workload with the algorithms that numerics allow, or nil if it is not
// attention or exceeds the resources of a block.
func NewAttention(w *expr.Workload, gpu *target.GPU, numerics schedule.Numerics) *sketch.Whole {
	found := sketch.MatchAttention(w)
	if found == nil || found.Single { // tiles have 16 rows
		return nil
	}
	s := schedule.New(w)
	a := &attention{Attention: found, gpu: gpu, wide: s.Stages[found.Scores].Tensor.DType.Bytes(), terms: 1}
	d := operand(s, found)
	a.bytes = d.Bytes()
	k := &searchspace.Sketch[attentionParameters]{
		Fixed:    attentionParameters{tall: 1, wide: 1, rows: 1, piece: a.N, stages: 1},
		Variants: []searchspace.Variant[attentionParameters]{{By: searchspace.Direct, Structure: a}},
	}
	var instructions []TensorAlgorithm
	if gpu.HasWarps() {
		instructions = TensorAlgorithms(s.Stages[found.Scores].Tensor.DType, d, numerics)
	}
	for _, x := range instructions {
		b := *a
		b.matrices, b.format, b.terms = true, x.Format, x.Format.Terms()
		if a.D%b.terms == 0 && b.fits(k.Fixed) && x.Format.Takes(s.Stages[found.Exp].Tensor.DType) {
			k.Variants = append(k.Variants, searchspace.Variant[attentionParameters]{By: x.By, Structure: &b})
		}
	}
	k.Open = searchspace.WithChoices(a.open())
	if !a.fits(k.Fixed) || sameOperand(s, found) {
		return nil
	}
	return &sketch.Whole{Out: found.Out, Family: k}
}

// operand returns the type of the factors of scores.
func operand(s *schedule.Schedule, a *sketch.Attention) array.DType {
	id := a.Scores
	if a.Keys >= 0 {
		id = a.Keys
	}
	loads := expr.Loads(s.Stages[id].Body)
	return loads[len(loads)-1].DType()
}

// sameOperand reports whether queries and keys are one tensor, which cannot be copied separately for each.
func sameOperand(s *schedule.Schedule, a *sketch.Attention) bool {
	loads := expr.Loads(s.Stages[a.Scores].Body)
	if a.Keys >= 0 {
		return loads[0].Tensor == expr.Loads(s.Stages[a.Keys].Body)[0].Tensor
	}
	return loads[0].Tensor == loads[1].Tensor
}

// open returns the knobs.
func (a *attention) open() []searchspace.Parameter[attentionParameters] {
	type q = attentionParameters
	tiles := sketch.CeilDiv(a.M, nvidia.MatrixRows)
	return []searchspace.Parameter[q]{
		sketch.Knob("tall", func(p *q) *int64 { return &p.tall }, sketch.AtMost(tiles, 1, 2, 4, 8)...),
		sketch.Knob("wide", func(p *q) *int64 { return &p.wide }, 1, 2, 4),
		sketch.Knob("rows", func(p *q) *int64 { return &p.rows }, sketch.AtMost(tiles, 1, 2)...),
		sketch.Knob("piece", func(p *q) *int64 { return &p.piece }, sketch.AtMost(a.N, 16, 32, 64, 128)...),
		sketch.Knob("stages", func(p *q) *int64 { return &p.stages }, 1, 2, 3),
	}
}

// fits reports whether any point is legal, so that there is a default.
func (a *attention) fits(fixed attentionParameters) bool {
	return slices.ContainsFunc([]int64{16, 32, 64, 128, a.N}, func(piece int64) bool {
		q := fixed
		q.piece = min(piece, a.N)
		return a.Legal(q) == nil
	})
}

// tile returns the rows of a block, columns those of the result, and keys those of a piece, in whole matrices.
func (q attentionParameters) tile() int64               { return q.tall * q.rows * nvidia.MatrixRows }
func (q attentionParameters) keys() int64               { return attentionWhole(q.piece) }
func (a *attention) columns() int64                     { return attentionWhole(a.E) }
func (q attentionParameters) threads() int64            { return q.tall * q.wide * warpThreads }
func (a *attention) pieces(q attentionParameters) int64 { return sketch.CeilDiv(a.N, q.piece) }

// attentionWhole rounds a number of columns up to whole matrices.
func attentionWhole(n int64) int64 {
	return sketch.CeilDiv(n, nvidia.MatrixColumns) * nvidia.MatrixColumns
}

// perRow returns how many threads share a row's sums.
func (q attentionParameters) perRow() int64 { return q.threads() / q.tile() }

// Padding after the rows of shared buffers, in 32-bit words, so that threads with a fragment of a matrix read from
// different banks: for contiguous terms, and for contiguous columns.
const (
	termsGap   = 4
	columnsGap = 8
)

// gapOf returns the padding after rows of the given number of columns.
func (a *attention) gapOf(columns int64) int64 {
	if a.loads() {
		return OddRowPadding(columns, a.bytes) * a.bytes / 4
	}
	return columnsGap
}

// loads reports whether fragments of queries, keys and values are loaded as matrices.
func (a *attention) loads() bool { return a.matrices && a.bytes == 2 && a.format.Packed() == 2 }

// sharedBytes returns the shared memory of a block.
func (a *attention) sharedBytes(q attentionParameters) int64 {
	gap := func(words int64) int64 { return words * 4 / a.bytes }
	queries := q.tile() * (a.D + gap(termsGap))
	fetched := q.keys()*(a.D+gap(termsGap)) + q.keys()*(a.columns()+gap(a.gapOf(a.columns())))
	rows := 2*q.tile()*(q.keys()+termsGap) + q.tile()*(2*a.pieces(q)+8)
	return (queries+q.stages*fetched)*a.bytes + rows*a.wide
}

// registers returns the number of 32-bit registers for a thread's results: scores and mixed.
func (a *attention) registers(q attentionParameters) int64 {
	parts := int64(1)
	if a.format == schedule.TF32Compensated && a.matrices {
		parts = 2
	}
	n := max(q.keys(), a.columns()) / nvidia.MatrixColumns / q.wide
	return q.rows*(4*(q.keys()+a.columns())/nvidia.MatrixColumns/q.wide*a.wide/4) + parts*(4*q.rows+2*n)
}

// Legal implements searchspace.Structure.
func (a *attention) Legal(q attentionParameters) error {
	switch {
	case q.threads() > int64(a.gpu.BlockThreads):
		return fmt.Errorf("space: %d threads are more than a block has", q.threads())
	case q.threads() < q.tile() || q.perRow() > q.piece:
		return fmt.Errorf("space: %d threads cannot share %d rows of %d keys", q.threads(), q.tile(), q.piece)
	case q.keys()/nvidia.MatrixColumns%q.wide != 0 || a.columns()/nvidia.MatrixColumns%q.wide != 0:
		return fmt.Errorf("space: matrices of %d keys and %d columns cannot be divided among %d warps", q.keys(), a.columns(), q.wide)
	case q.piece%a.terms != 0:
		return fmt.Errorf("space: %d keys are not a multiple of the %d terms of an instruction", q.piece, a.terms)
	case a.registers(q) > tensorMaxRegisters:
		return fmt.Errorf("space: a thread keeps %d registers, more than it has", a.registers(q))
	case q.threads()*(OwnRegisters+a.registers(q)) > int64(a.gpu.MultiprocessorRegisters):
		return fmt.Errorf("space: %d threads with %d registers are more than a multiprocessor has", q.threads(), a.registers(q))
	case a.sharedBytes(q) > a.gpu.BlockSharedBytes:
		return fmt.Errorf("space: a block takes %d bytes of shared memory of %d", a.sharedBytes(q), a.gpu.BlockSharedBytes)
	}
	return nil
}
