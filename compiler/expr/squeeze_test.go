package expr

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Merge panicked on this: with the axis gone the condition is known, and the side that is left was rewritten twice.
func TestSelectionMayFoldWhenAnAxisIsDropped(t *testing.T) {
	x := NewInput("x", array.Float32, 3, 1)
	y := Compute("y", []int64{3, 1}, func(i []Expr) Expr {
		return Sel(Bin(Le, i[1], I(0)), x.At(i...), Zero(array.Float32))
	})
	w, err := NewWorkload([]*Tensor{y})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Merge().Outputs[0].Shape; len(got) != 1 || got[0] != 3 {
		t.Errorf("the output has shape %v, want [3]", got)
	}
}
