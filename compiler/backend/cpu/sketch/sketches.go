package sketch

import (
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch/attention"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch/elementwise"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch/reuse"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch/rowwise"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch/strassen"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch/tile"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch/winograd"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/sketch/nest"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
)

// New derives the space of a workload on a processor, with the algorithms that numerics allow.
func New(w *expr.Workload, t *target.Target, numerics schedule.Numerics) *space.Space {
	return sketch.New(w, t, sketches(t, numerics))
}

// reduction is schedules of a unit's reduction that compute it otherwise than as its direct sum, of whose nest the
// ends are given; nil when there are none.
type reduction func(s *schedule.Schedule, acc *schedule.Stage, u nest.Unit, t *target.Target, ends []reuse.Access) space.Family

// reductions are the sketches of algorithms, in the order in which they are tried.
func reductions() []reduction { return []reduction{winograd.New, strassen.New} }

// sketches are all for a processor.
func sketches(t *target.Target, numerics schedule.Numerics) sketch.Sketches {
	return sketch.Sketches{
		Wholes: []func(*expr.Workload) *nest.Whole{
			func(w *expr.Workload) *nest.Whole { return attention.New(w, t) },
			func(w *expr.Workload) *nest.Whole { return rowwise.New(w, t) },
		},
		Reduction: func(s *schedule.Schedule, g *schedule.Stage, u nest.Unit) (direct, other space.Family) {
			tiles := tile.New(s, g, u, t)
			if numerics == schedule.Strict {
				return tiles.Family(), nil
			}
			for _, algorithm := range reductions() {
				if other = algorithm(s, g, u, t, tiles.Ends()); other != nil {
					break
				}
			}
			return tiles.Family(), other
		},
		Map: func(s *schedule.Schedule, u nest.Unit) space.Family { return elementwise.New(s, u, t) },
	}
}
