package space

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestACrowdedTileOfTwoStepsCosts: 7 x 4 vectors, the four of a step and one that is broadcast are one more than 32 registers; LLVM spills all
// of a loop of two steps, and next to nothing of one with four.
func TestACrowdedTileOfTwoStepsCosts(t *testing.T) {
	s := New(matrixProduct(t, 3136, 256, 128), parseTarget(t, "x86-64-v4"), schedule.Strict)
	cost := func(point string) float64 {
		p, ok := s.Parse(point + " hb=14 cb=64 inner=1 outer=1")
		if !ok {
			t.Fatalf("%s is not legal", point)
		}
		return s.Cost(p)
	}
	if two, four := cost("tv=4 tw=7 ku=2"), cost("tv=4 tw=7 ku=4"); two < 1.5*four {
		t.Errorf("two steps cost %g, four %g; measured, they take twice as long", two, four)
	}
	if two, four := cost("tv=2 tw=14 ku=2"), cost("tv=2 tw=14 ku=4"); two > 1.1*four {
		t.Errorf("two steps of a tile that fits cost %g, four %g", two, four)
	}
}

// matrixProduct is a product of an input of rows x inner by a constant.
func matrixProduct(t *testing.T, rows, inner, columns int64) *expr.Workload {
	x, w := expr.NewInput("x", array.Float32, rows, inner), expr.NewConstant("w", array.Float32, inner, columns)
	return workloadOf(t, expr.ReduceOver("y", expr.Sum, []int64{rows, columns}, []int64{inner}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(x.At(i[0], r[0]), w.At(r[0], i[1]))
	}))
}
