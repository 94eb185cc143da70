package sketch

import (
	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch/attention"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch/elementwise"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch/rowwise"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch/slices"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch/tensor"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch/tile"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch/windows"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/sketch/nest"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// New derives the space of a workload on a GPU, with the algorithms that numerics allow.
func New(w *expr.Workload, t *target.Target, numerics schedule.Numerics) *space.Space {
	return sketch.New(w, t, sketch.Sketches{
		Wholes: []func(*expr.Workload) *nest.Whole{
			func(w *expr.Workload) *nest.Whole { return attention.New(w, t.GPU, numerics) },
			func(w *expr.Workload) *nest.Whole { return rowwise.New(w, t.GPU) },
		},
		Reduction: func(s *schedule.Schedule, g *schedule.Stage, u nest.Unit) (direct, other space.Family) {
			if f := windows.New(s, g, u, t.GPU); f != nil {
				return f, nil
			}
			if f := tile.New(s, g, u, t.GPU); f != nil {
				if !t.GPU.HasWarps() {
					return f, nil
				}
				return f, tensor.New(s, g, u, t.GPU, numerics)
			}
			if f := slices.New(s, g, u, t.GPU); f != nil {
				return f, nil
			}
			return elementwise.New(s, u, t.GPU), nil
		},
		Map: func(s *schedule.Schedule, u nest.Unit) space.Family { return elementwise.New(s, u, t.GPU) },
	})
}
