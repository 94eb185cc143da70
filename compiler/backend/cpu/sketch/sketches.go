package sketch

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// New returns the space of a workload on a processor with the algorithms that numerics allow.
func New(w *expr.Workload, t *target.Target, numerics schedule.Numerics) *searchspace.Space {
	return sketch.New(w, t, sketches(t, numerics))
}

// other returns alternatives to the direct sum for a unit's reduction, or nil without one. ends belong to its tile.
// Strassen's algorithm saves an eighth of the products where instructions for pairs would save half.
func other(s *schedule.Schedule, acc *schedule.Stage, u sketch.Unit, t *target.Target, numerics schedule.Numerics, tiles *Tile) searchspace.Family {
	if f := NewWinograd(s, acc, u, t, numerics >= schedule.Fast && microarch.MultipliesPairs(t)); f != nil {
		return f
	}
	if tiles.dot != nil {
		return nil
	}
	return NewStrassen(s, acc, u, t, tiles.stored())
}

// sketches returns all sketches for a processor.
func sketches(t *target.Target, numerics schedule.Numerics) sketch.Sketches {
	return sketch.Sketches{
		Wholes: []func(*expr.Workload) *sketch.Whole{
			func(w *expr.Workload) *sketch.Whole { return NewAttention(w, t, numerics) },
			func(w *expr.Workload) *sketch.Whole { return NewRowwise(w, t) },
		},
		Reduction: func(s *schedule.Schedule, g *schedule.Stage, u sketch.Unit) (direct, otherwise searchspace.Family) {
			if by := NewBlocks(s, g, u, t, numerics); by != nil {
				return by, nil
			}
			tiles := NewTile(s, g, u, t)
			if matrices := TileMatrices(s, g, u, t); matrices != nil {
				return tiles.Family(), matrices
			}
			if squares := TileSquares(s, g, u, t, numerics); squares != nil {
				return tiles.Family(), squares
			}
			if f := NewFolds(s, g, u, t, tiles); f != nil {
				return tiles.Family(), f
			}
			if numerics == schedule.Strict {
				return tiles.Family(), nil
			}
			return tiles.Family(), other(s, g, u, t, numerics, tiles)
		},
		Map: func(s *schedule.Schedule, u sketch.Unit) searchspace.Family { return NewElementwise(s, u, t) },
	}
}

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
