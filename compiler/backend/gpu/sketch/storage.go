package sketch

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Storage is the type in which factors of products in float32 are stored: bfloat16 where numerics are fast and a card
// has instructions for matrices. It has the range of float32, so that no model overflows; float16 has three bits more,
// but who knows the range of activations?
func Storage(t *target.Target, numerics schedule.Numerics) array.DType {
	if numerics < schedule.Fast || !t.GPU.HasWarps() {
		return array.Invalid
	}
	return array.BFloat16
}
