package cost

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestAccessTouchesWhatItsAxesReach uses a 3x3 window over an image of 58 x 58 x 64: axes row, column, channel out;
// window rows, columns, channels in.
func TestAccessTouchesWhatItsAxesReach(t *testing.T) {
	image, weights := expr.NewInput("x", array.Float32, 58, 58, 64), expr.NewConstant("w", array.Float32, 3, 3, 64, 16)
	y := expr.ReduceOver("y", expr.Sum, []int64{56, 56, 16}, []int64{3, 3, 64}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(image.At(expr.AddE(i[0], r[0]), expr.AddE(i[1], r[1]), r[2]), weights.At(r[0], r[1], r[2], i[2]))
	})
	w, err := expr.NewWorkload([]*expr.Tensor{y})
	if err != nil {
		t.Fatal(err)
	}
	s := schedule.New(w)
	a := Accesses(s, s.Stages[0], 6)[0]
	extents := []float64{1, 6, 16, 3, 3, 64}
	for d, want := range []float64{3, 8, 64} {
		if got := a.Reach(d, extents); got != want {
			t.Errorf("dimension %d: %v elements, want %v", d, got, want)
		}
	}
	if lines := a.touched(extents, nil, 64).Lines; lines != 3*8*64*4/64 {
		t.Errorf("%v lines, want %d", lines, 3*8*64*4/64)
	}
	if a.MovesWith(2) || !a.MovesWith(1) {
		t.Error("the output's channel moves the window, or its column does not")
	}
}
