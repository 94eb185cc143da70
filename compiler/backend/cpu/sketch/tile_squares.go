package sketch

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/machine"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// TileSquares returns the schedules of a reduction whose instructions multiply two positions by two channels at once.
// They take 8 bytes of each, where a dot product takes 4 bytes of one position and four channels. The weights of a
// vector's channels are consecutive, in two registers. Package squares finds the two positions. TileSquares returns
// nil if the target has no such instructions or the operands do not match. Those of bfloat16 need fast numerics: on
// most cores the sum of two products is rounded to odd, before it is added and rounded again, and denormal numbers
// are flushed to zero.
func TileSquares(s *schedule.Schedule, acc *schedule.Stage, u sketch.Unit, t *target.Target, numerics schedule.Numerics) searchspace.Family {
	choose := func(data, weights array.DType) instruction { return squareInstruction(t, data, weights, numerics) }
	narrow := inSquares(t)
	a, b, product := schedule.Factors(acc.Body)
	if !product || acc.Combiner != expr.Sum || choose(a.DType(), b.DType()).terms == 0 {
		return nil
	}
	x := newTile(s, acc, u, narrow)
	if x.findDot(s, acc, choose); x.dot != nil {
		x.joinPositions(acc)
		x.fedBy(s, acc, u)
	} else if x = adjoinTerms(s, acc, u, narrow, choose); x == nil {
		return nil
	}
	if x.lanes != machine.SquareLanes || x.extent(x.vec) < x.lanes || x.picks || x.ragged || x.col < 0 {
		return nil
	}
	if a.DType() == array.BFloat16 {
		return x.family(MMLABF16)
	}
	return x.family(MMLAI8)
}

// inSquares returns a target with vectors as long as squares. SVE's instructions would multiply several squares at
// once; Neon's are used there, too, in the lower parts of the same registers.
func inSquares(t *target.Target) *target.Target {
	if t.CPU.Arch != target.ARM || t.CPU.VectorBytes <= microarch.NeonBytes {
		return t
	}
	t = t.Clone()
	t.CPU.VectorBytes = microarch.NeonBytes
	return t
}

// squareInstruction returns a target's instruction for products of data by weights. It is assumed to have the
// throughput and latency of the dot product. On processors with longer registers than Neon's, one of their units
// works as several for Neon. Estimated from vendors' tables.
func squareInstruction(t *target.Target, data, weights array.DType, numerics schedule.Numerics) instruction {
	by := instruction{terms: schedule.SquareBytes / data.Bytes(), slots: 0.5, operations: 1, squares: true}
	if longer := float64(t.CPU.VectorBytes) / microarch.NeonBytes; longer > 1 {
		by.slots /= longer
	}
	switch {
	case !microarch.HasSquares(t, data, weights):
		return instruction{}
	case !data.IsFloat():
		return by
	case numerics < schedule.Fast:
		return instruction{}
	}
	by.late = microarch.PairsLate
	return by
}
