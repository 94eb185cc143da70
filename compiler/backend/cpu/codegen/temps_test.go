package codegen

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// TestBordersAndLoadsAreNamedOnce checks that an unrolled loop loads a conditional value once, although it stores
// results in between.
func TestBordersAndLoadsAreNamedOnce(t *testing.T) {
	x := expr.NewInput("x", array.Float32, 8)
	y := expr.Compute("y", []int64{8, 4}, func(i []expr.Expr) expr.Expr {
		padded := expr.Sel(expr.Bin(expr.Lt, i[0], expr.I(7)), x.At(expr.AddE(i[0], expr.I(1))), expr.Zero(array.Float32))
		return expr.MulE(padded, expr.To(array.Float32, i[1]))
	})
	w, err := expr.NewWorkload([]*expr.Tensor{y})
	if err != nil {
		t.Fatal(err)
	}
	s := schedule.New(w)
	if err := s.Unroll(0, 1); err != nil {
		t.Fatal(err)
	}
	u := newUnit(0)
	if _, err := u.Add("k", "id", s); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(u.Source(), " ? "); n != 1 {
		t.Errorf("the border is decided %d times:\n%s", n, u.code.String())
	}
}
