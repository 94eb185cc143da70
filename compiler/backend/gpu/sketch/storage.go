package sketch

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// rowBytes is what a thread copies at once, and what rows are multiples of that a card copies as boxes.
const rowBytes = 16

// Storage is how factors of products in float32 are stored: all of them in a type of 16 bits where numerics are fast
// and a card has instructions for matrices, in bfloat16 unless another one is asked for. It has the range of float32,
// so that no model overflows; float16 has three bits more, but who knows the range of activations?
func Storage(t *target.Target, numerics schedule.Numerics, as array.DType) array.Storage {
	if !t.GPU.HasWarps() {
		return array.Storage{}
	}
	if numerics < schedule.Fast {
		return array.Storage{RowBytes: rowBytes, FloatKernels: true}
	}
	if as == array.Invalid {
		as = array.BFloat16
	}
	return array.Storage{Type: as, RowBytes: rowBytes, FloatKernels: true}
}
