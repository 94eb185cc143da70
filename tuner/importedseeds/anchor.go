package importedseeds

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/wire"
)

// Anchor returns a digest of a workload's heaviest sum and its operands. It is equal for a convolution with
// and without bias, addition and activation. ok is false if there is no sum or an extent is open.
func Anchor(w *expr.Workload) (digest string, ok bool) {
	var heaviest *expr.Tensor
	for _, t := range w.Stages {
		if t.Combiner == expr.Sum && (heaviest == nil || seedsProducts(t) > seedsProducts(heaviest)) {
			heaviest = t
		}
	}
	if heaviest == nil {
		return "", false
	}
	c := copier{}
	sum := c.copy(heaviest)
	if c.open {
		return "", false
	}
	alone, err := expr.NewWorkload([]*expr.Tensor{sum})
	if err != nil {
		return "", false
	}
	return alone.Merge().Digest(), true
}

// seedsProducts returns the total number of terms of a sum.
func seedsProducts(t *expr.Tensor) float64 {
	n := 1.0
	for _, v := range slices.Concat(t.Axes, t.Reduce) {
		n *= float64(v.Extent)
	}
	return n
}

// copier copies tensors without their offsets in larger ones, which depend on the model.
type copier struct {
	made map[*expr.Tensor]*expr.Tensor
	open bool
}

func (c *copier) copy(t *expr.Tensor) *expr.Tensor {
	if made := c.made[t]; made != nil {
		return made
	}
	if c.made == nil {
		c.made = map[*expr.Tensor]*expr.Tensor{}
	}
	made := *t
	made.Strides = nil
	c.made[t] = &made
	for _, v := range slices.Concat(t.Axes, t.Reduce) {
		c.open = c.open || v.Limit != nil
	}
	if t.Role == expr.Computed {
		made.Body = expr.Rewrite(t.Body, func(e expr.Expr) expr.Expr {
			if l, ok := e.(*expr.Load); ok {
				return &expr.Load{Tensor: c.copy(l.Tensor), Index: l.Index}
			}
			return e
		})
	}
	return &made
}

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
