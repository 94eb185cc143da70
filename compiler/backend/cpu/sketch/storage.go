package sketch

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Storage is the type in which factors of products in float32 are stored: bfloat16 where numerics are fast and a
// processor multiplies pairs of it.
func Storage(t *target.Target, numerics schedule.Numerics) array.DType {
	if numerics < schedule.Fast || !t.CPU.Has("avx512bf16") && (t.CPU.Arch != target.ARM || !t.CPU.Has("bf16")) {
		return array.Invalid
	}
	return array.BFloat16
}
