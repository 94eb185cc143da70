package sketch

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Storage returns how factors of float32 products are stored: all of them in 16 bits if numerics are fast and a GPU
// has matrix instructions, in bfloat16 unless another type is requested. bfloat16 has the range of float32, so that
// no model overflows. float16 has three more bits of precision, but the range of activations is unknown.
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
