package sketch

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// New returns the space of a workload on a GPU with the algorithms that numerics allow.
func New(w *expr.Workload, t *target.Target, numerics schedule.Numerics) *searchspace.Space {
	return sketch.New(w, t, sketch.Sketches{
		Wholes: []func(*expr.Workload) *sketch.Whole{
			func(w *expr.Workload) *sketch.Whole { return NewAttention(w, t.GPU, numerics) },
			func(w *expr.Workload) *sketch.Whole { return NewRowwise(w, t.GPU) },
		},
		Reduction: func(s *schedule.Schedule, g *schedule.Stage, u sketch.Unit) (direct, other searchspace.Family) {
			if f := NewWindows(s, g, u, t.GPU); f != nil {
				return f, nil
			}
			if f := NewTile(s, g, u, t.GPU); f != nil {
				if !t.GPU.HasWarps() {
					return f, nil
				}
				return f, NewTensor(s, g, u, t.GPU, numerics)
			}
			if f := NewSlices(s, g, u, t.GPU); f != nil {
				return f, nil
			}
			return NewElementwise(s, u, t.GPU), nil
		},
		Map: func(s *schedule.Schedule, u sketch.Unit) searchspace.Family { return NewElementwise(s, u, t.GPU) },
	})
}

// Storage returns how factors of float32 products are stored: all of them in 16 bits if numerics are fast and a GPU
// has matrix instructions, in bfloat16 unless another type is requested. bfloat16 has the range of float32, so that
// no model overflows. float16 has three more bits of precision, but the range of activations is unknown.
func Storage(t *target.Target, numerics schedule.Numerics, as array.DType) array.Storage {
	if !t.GPU.HasWarps() {
		return array.Storage{Unrolled: true}
	}
	if numerics < schedule.Fast {
		return array.Storage{RowBytes: rowBytes, FloatKernels: true, Unrolled: true}
	}
	if as == array.Invalid {
		as = array.BFloat16
	}
	return array.Storage{Type: as, RowBytes: rowBytes, FloatKernels: true, Unrolled: true}
}

// Properties of the cards that schedules are written for.
const (
	// warpThreads is the number of threads of a warp, which exchange registers.
	warpThreads = 32
	// copyBytes is the maximum size of a thread's copy.
	copyBytes = 16
	// rowBytes is the alignment of a tensor's rows for TMA copies.
	rowBytes = 16
	// tensorMaxRegisters limits a thread's results and operands of matrix instructions, so that addresses have room.
	tensorMaxRegisters = 200
)

// Costs in cycles, or in a thread's instructions.
const (
	// shuffleWait is the time of a warp shuffle.
	shuffleWait = 25.0
	// stepWait is the cycles of a step in which a block's warps do not multiply: they wait for one another, and for
	// their first fragments.
	stepWait = 60.0
	// copyOperations is a thread's instructions per copy to shared memory.
	copyOperations = 6.0
	// loadOperations is a thread's instructions per element of a fragment that it loads and rounds or packs.
	loadOperations = 2.0
)
