package sketch

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Storage returns how factors of float32 products are stored with fast numerics: as bfloat16, unless float16 is
// requested. If the processor multiplies pairs or tiles of the type, activations use it, too. Otherwise only weights
// do, which are bound by memory; activations would be cast at each use. Bytes are stored in the type that the
// processor multiplies best at any level of numerics.
func Storage(t *target.Target, numerics schedule.Numerics, as array.DType) array.Storage {
	var s array.Storage
	switch {
	case numerics < schedule.Fast || !casts(t, as):
	case as == array.Float16:
		s = stored(as, microarch.HasTiles(t, as))
	default:
		s = stored(array.BFloat16, microarch.HasTiles(t, array.BFloat16) || microarch.MultipliesPairs(t))
	}
	s.Bytes = TileBytes(t)
	return s
}

// stored returns the storage for a processor that multiplies the type, or that only casts it.
func stored(as array.DType, multiplies bool) array.Storage {
	return array.Storage{Type: as, Constants: !multiplies, FloatKernels: multiplies}
}

// casts reports whether a processor has vector casts from a type to float32.
func casts(t *target.Target, from array.DType) bool {
	switch t.CPU.Arch {
	case target.X86:
		return t.CPU.Has("avx2") && (from != array.Float16 || t.CPU.Has("f16c"))
	case target.ARM:
		return true
	}
	return false
}
