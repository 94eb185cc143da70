package warmstart

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/wire"
)

// Points returns the points of a workload's space nearest to its seeds, as text, fastest seed first. A nil file
// returns no points.
func (f *File) Points(w *expr.Workload, t *target.Target, numerics schedule.Numerics) []string {
	tilings := f.tilings(w)
	if len(tilings) == 0 {
		return nil
	}
	s, err := registry.Space(w, t, numerics)
	if err != nil {
		return nil // the job reports the error
	}
	var points []string
	for _, tiling := range tilings {
		p, ok := s.Tiled(tiling)
		if text := s.Format(p); ok && !slices.Contains(points, text) {
			points = append(points, text)
		}
	}
	return points[:min(wire.MaxSeeds, len(points))]
}

// tilings returns the seeds of a workload: the first of each log, then the second of each, and so on.
func (f *File) tilings(w *expr.Workload) (list []searchspace.Tiling) {
	if f == nil || len(f.entries) == 0 {
		return nil
	}
	anchor, ok := Anchor(w)
	if !ok {
		return nil
	}
	for rank := range PerOperator {
		for _, i := range f.at[anchor] {
			if tilings := f.entries[i].Tilings; rank < len(tilings) && !slices.Contains(list, tilings[rank]) {
				list = append(list, tilings[rank])
			}
		}
	}
	return list
}
