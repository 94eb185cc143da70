package sketch

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/machine"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// An instruction for squares of sums multiplies two positions by two channels: 8 bytes of each, where one for single
// sums takes 4 bytes of one position and four channels. Everything else is as there: the weights of a vector's
// channels lie one behind the other, in two registers. Package squares finds the two positions.

// TileSquares are the schedules of a reduction in which instructions multiply two positions by two channels at once;
// nil where a target has none, or operands do not lie as they have them. Those of bfloat16 need fast numerics: on
// most cores the sum of two products is rounded to odd, before it is added and rounded again, and denormal numbers
// are zero.
func TileSquares(s *schedule.Schedule, acc *schedule.Stage, u sketch.Unit, t *target.Target, numerics schedule.Numerics) space.Family {
	choose := func(data, weights array.DType) instruction { return squareInstruction(t, data, weights, numerics) }
	narrow := inSquares(t)
	a, b, product := schedule.Factors(acc.Body)
	if !product || acc.Combiner != expr.Sum || choose(a.DType(), b.DType()).terms == 0 {
		return nil
	}
	x := newTile(s, acc, u, narrow)
	if x.findDot(s, acc, choose); x.dot != nil {
		x.joinPositions()
		x.fedBy(s, acc, u)
	} else if x = adjoinTerms(s, acc, u, narrow, choose); x == nil {
		return nil
	}
	if x.lanes != ir.SquareLanes || x.extent(x.vec) < x.lanes || x.picks || x.ragged || x.col < 0 {
		return nil
	}
	if a.DType() == array.BFloat16 {
		return x.family(MMLABF16)
	}
	return x.family(MMLAI8)
}

// inSquares is a target with vectors as long as squares are. SVE's instructions would multiply several squares at
// once; Neon's are used there, too, in the lower parts of the same registers.
func inSquares(t *target.Target) *target.Target {
	if t.CPU.Arch != target.ARM || t.CPU.VectorBytes <= machine.NeonBytes {
		return t
	}
	t = t.Clone()
	t.CPU.VectorBytes = machine.NeonBytes
	return t
}

// squareInstruction is that of a target for products of data by weights. As many are taken to begin in a cycle as of
// those for single sums, and to take as long. On processors with longer registers than Neon's, a unit for these works
// as several for Neon's. Estimated from vendors' tables.
func squareInstruction(t *target.Target, data, weights array.DType, numerics schedule.Numerics) instruction {
	by := instruction{terms: schedule.SquareBytes / data.Bytes(), slots: 0.5, operations: 1, squares: true}
	if longer := float64(t.CPU.VectorBytes) / machine.NeonBytes; longer > 1 {
		by.slots /= longer
	}
	switch {
	case !machine.HasSquares(t, data, weights):
		return instruction{}
	case !data.IsFloat():
		return by
	case numerics < schedule.Fast:
		return instruction{}
	}
	by.late = machine.PairsLate
	return by
}
