package sketch

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/machine"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Storage is how factors of products in float32 are stored where numerics are fast: in bfloat16, unless float16 is
// asked for. Where a processor multiplies pairs or tiles of the type, activations are stored so, too. Elsewhere they
// would be cast each time that they are used, and only weights, which wait for memory, are worth it. Bytes are kept in
// the type that the processor multiplies best, whatever numerics are.
func Storage(t *target.Target, numerics schedule.Numerics, as array.DType) array.Storage {
	var s array.Storage
	switch {
	case numerics < schedule.Fast || !casts(t, as):
	case as == array.Float16:
		s = stored(as, machine.HasTiles(t, as))
	default:
		s = stored(array.BFloat16, machine.HasTiles(t, array.BFloat16) || machine.MultipliesPairs(t))
	}
	s.Bytes = TileBytes(t)
	return s
}

// stored is the storage of a processor that multiplies the type, or only casts it.
func stored(as array.DType, multiplies bool) array.Storage {
	return array.Storage{Type: as, Constants: !multiplies, FloatKernels: multiplies}
}

// casts reports whether a processor has vectors in which elements of a type are cast to float32.
func casts(t *target.Target, from array.DType) bool {
	switch t.CPU.Arch {
	case target.X86:
		return t.CPU.Has("avx2") && (from != array.Float16 || t.CPU.Has("f16c"))
	case target.ARM:
		return true
	}
	return false
}
