package sketch

import (
	"github.com/tilth-dev/tilth/compiler/backend/cpu/machine"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch/attention"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch/blocks"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch/elementwise"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch/folds"
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

// other is schedules of a unit's reduction that compute it otherwise than as its direct sum, of whose tile the ends
// are given; nil when there are none. Strassen's algorithm saves an eighth of the products where instructions for
// pairs save half.
func other(s *schedule.Schedule, acc *schedule.Stage, u nest.Unit, t *target.Target, numerics schedule.Numerics, tiles *tile.Tile) space.Family {
	if f := winograd.New(s, acc, u, t, numerics >= schedule.Fast && machine.MultipliesPairs(t)); f != nil {
		return f
	}
	if tiles.Dots() {
		return nil
	}
	return strassen.New(s, acc, u, t, tiles.Ends())
}

// sketches are all for a processor.
func sketches(t *target.Target, numerics schedule.Numerics) sketch.Sketches {
	return sketch.Sketches{
		Wholes: []func(*expr.Workload) *nest.Whole{
			func(w *expr.Workload) *nest.Whole { return attention.New(w, t, numerics) },
			func(w *expr.Workload) *nest.Whole { return rowwise.New(w, t) },
		},
		Reduction: func(s *schedule.Schedule, g *schedule.Stage, u nest.Unit) (direct, otherwise space.Family) {
			if by := blocks.New(s, g, u, t, numerics); by != nil {
				return by, nil
			}
			tiles := tile.New(s, g, u, t)
			if matrices := tile.Matrices(s, g, u, t); matrices != nil {
				return tiles.Family(), matrices
			}
			if squares := tile.Squares(s, g, u, t, numerics); squares != nil {
				return tiles.Family(), squares
			}
			if f := folds.New(s, g, u, t, tiles); f != nil {
				return tiles.Family(), f
			}
			if numerics == schedule.Strict {
				return tiles.Family(), nil
			}
			return tiles.Family(), other(s, g, u, t, numerics, tiles)
		},
		Map: func(s *schedule.Schedule, u nest.Unit) space.Family { return elementwise.New(s, u, t) },
	}
}
