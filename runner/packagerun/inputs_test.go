package packagerun

import (
	"math"
	"testing"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
)

// TestSyntheticInputsAreNotZero checks all floating point types. The numbers are deterministic.
func TestSyntheticInputsAreNotZero(t *testing.T) {
	for _, d := range []array.DType{array.Float16, array.BFloat16, array.Float32, array.Float64} {
		manifest := &aot.Manifest{Inputs: []aot.Tensor{{Name: "x", DType: d.String(), Shape: []int64{64}}}}
		made, again := RandomInputs(manifest, nil)["x"], RandomInputs(manifest, nil)["x"]
		sum := 0.0
		for i := range made.Len() {
			v := made.Float(i)
			if v != again.Float(i) || v < -1 || v > 1 {
				t.Errorf("%v: element %d is %v, then %v", d, i, v, again.Float(i))
			}
			sum += math.Abs(v)
		}
		if sum < 16 {
			t.Errorf("%v: the numbers add up to %v only", d, sum)
		}
	}
	manifest := &aot.Manifest{Inputs: []aot.Tensor{{Name: "tokens", DType: array.Int64.String(), Shape: []int64{8}}}}
	if tokens := RandomInputs(manifest, nil)["tokens"]; tokens.Int(7) != 0 {
		t.Error("a token may be none of the model's")
	}
}
