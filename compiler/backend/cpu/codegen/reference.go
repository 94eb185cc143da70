package codegen

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Reference returns a translation unit with a plain scalar kernel of the workload, against which candidates are
// verified. It must be more exact than the candidates, so it accumulates floating-point numbers in double. A single
// float accumulator over millions of terms would be less exact than any candidate, which has many partial sums.
func Reference(w *expr.Workload) (string, error) {
	s, err := Plain(w)
	if err != nil {
		return "", fmt.Errorf("reference: %w", err)
	}
	p, err := Print("k0", backend.Kernel{ID: "reference", Schedule: s}, nil)
	if err != nil {
		return "", err
	}
	return Link(w, []backend.Printed{p}, nil)
}

// Plain returns the schedule of the reference. It schedules the same sums in double rather than w itself.
func Plain(w *expr.Workload) (*schedule.Schedule, error) {
	s := schedule.New(exact(w))
	var sums *schedule.Stage
	for _, g := range s.Stages {
		if g.Combiner == expr.Sum {
			sums = g // the next stage rounds these sums
			continue
		}
		if err := byTiles(s, g, sums); err != nil {
			return nil, err
		}
		sums = nil
	}
	return s, nil
}

// exact returns the workload with each sum in a stage of its own, in double for floating-point numbers, followed by a
// stage that rounds it to its type.
func exact(w *expr.Workload) *expr.Workload {
	replaced := map[*expr.Tensor]*expr.Tensor{}
	e := &expr.Workload{Inputs: w.Inputs, Constants: w.Constants}
	for _, t := range w.Stages {
		c := *t
		c.Body = expr.Rewrite(t.Body, func(x expr.Expr) expr.Expr {
			if l, ok := x.(*expr.Load); ok && replaced[l.Tensor] != nil {
				return &expr.Load{Tensor: replaced[l.Tensor], Index: l.Index}
			}
			return x
		})
		result := &c
		if t.Combiner == expr.Sum {
			if t.DType.IsFloat() {
				c.DType, c.Body = array.Float64, expr.To(array.Float64, c.Body)
			}
			c.Strides = nil
			e.Stages = append(e.Stages, &c)
			result = expr.Compute(t.Name, t.Shape, func(i []expr.Expr) expr.Expr { return expr.To(t.DType, c.At(i...)) })
			result.Strides = t.Strides
		}
		e.Stages, replaced[t] = append(e.Stages, result), result
	}
	for _, t := range w.Outputs {
		e.Outputs = append(e.Outputs, replaced[t])
	}
	return e
}

// These limit the rows and columns of a tile of results: the last two axes longer than one. The sums of a tile stay
// in the first-level cache. A C compiler vectorises columns and adds this many terms to each sum while it is in a
// register.
const (
	tileRows    = 8
	tileColumns = 256
	tileTerms   = 4
)

// byTiles computes results in tiles together with the sums that are rounded to them, if any. Workers share the tiles,
// as a large workload would take seconds on one.
func byTiles(s *schedule.Schedule, results, sums *schedule.Stage) error {
	if len(results.Axes) == 0 {
		return nil
	}
	tiles, err := tile(s, results)
	if err != nil {
		return err
	}
	if sums != nil {
		if err := s.ComputeAt(sums.ID, results.ID, tiles); err != nil {
			return err
		}
		if err := byTerms(s, sums); err != nil {
			return err
		}
	}
	return s.Parallel(results.ID, tiles)
}

// tile splits the axes of results into tiles, and returns the loop over them.
func tile(s *schedule.Schedule, g *schedule.Stage) (tiles int, err error) {
	rows, columns := lastLong(g.Axes)
	var outer, inner []int
	for k, axis := range g.Axes {
		extent := int64(1)
		switch k {
		case columns:
			if extent = divisorAtMost(axis.Extent, tileColumns); extent < tileColumns/8 {
				extent = axis.Extent // no divisor is large enough to be worthwhile
			}
		case rows:
			extent = divisorAtMost(axis.Extent, tileRows)
		}
		o, i, err := s.Split(g.ID, k, extent, schedule.Peel)
		if err != nil {
			return 0, err
		}
		outer, inner = append(outer, o), append(inner, i)
	}
	order := append(slices.Clone(outer), loops(g, true)...)
	if err := s.Reorder(g.ID, append(order, inner...)...); err != nil {
		return 0, err
	}
	tiles = outer[0]
	for _, o := range outer[1:] {
		if tiles, err = s.Fuse(g.ID, tiles, o); err != nil {
			return 0, err
		}
	}
	return tiles, nil
}

// byTerms moves a tile's loops inside the loops over the terms of its sums, except for a few terms at a time.
func byTerms(s *schedule.Schedule, g *schedule.Stage) error {
	_, last := lastLong(g.Reduce)
	last = max(0, last)
	_, few, err := s.Split(g.ID, len(g.Axes)+last, divisorAtMost(g.Reduce[last].Extent, tileTerms), schedule.Peel)
	if err != nil {
		return err
	}
	order := slices.DeleteFunc(loops(g, true), func(k int) bool { return k == few })
	if err := s.Reorder(g.ID, append(append(order, loops(g, false)...), few)...); err != nil {
		return err
	}
	return s.Unroll(g.ID, few)
}

// loops returns the loops over the terms of a stage, or over its results.
func loops(g *schedule.Stage, terms bool) (ids []int) {
	for _, l := range g.Leaves {
		if l.Reduce == terms {
			ids = append(ids, l.ID)
		}
	}
	return ids
}

// lastLong returns the last two axes longer than one, or -1 for a missing one.
func lastLong(axes []*expr.Var) (before, last int) {
	before, last = -1, -1
	for k, axis := range axes {
		if axis.Extent > 1 {
			before, last = last, k
		}
	}
	return before, last
}

// divisorAtMost returns the largest divisor of n that does not exceed limit.
func divisorAtMost(n, limit int64) int64 {
	d := min(n, limit)
	for n%d != 0 {
		d--
	}
	return d
}
