package sketch

import (
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
