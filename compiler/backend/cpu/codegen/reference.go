package codegen

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Reference is a translation unit with a plain scalar kernel of the workload, against which candidates are verified.
// It must be more exact than what it judges, so it adds floating point numbers in double: a single float that takes in
// millions of terms in their order is further from their sum than any candidate, which has many partial sums.
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

// Plain is the schedule of the reference. It is not of w itself, but of the same sums in double.
func Plain(w *expr.Workload) (*schedule.Schedule, error) {
	s := schedule.New(exact(w))
	var sums *schedule.Stage
	for _, g := range s.Stages {
		if g.Combiner == expr.Sum {
			sums = g // of the next stage, which rounds them
			continue
		}
		if err := byTiles(s, g, sums); err != nil {
			return nil, err
		}
		sums = nil
	}
	return s, nil
}

// exact is the workload with each sum in a stage of its own, that of floating point numbers in double, and behind it
// one that rounds it to its type.
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

// A tile of results has at most so many rows and columns, which are their last two axes that are longer than one. Its
// sums stay in the first cache. A C compiler makes vectors of columns, and adds so many terms to each while its sum is
// in a register.
const (
	tileRows    = 8
	tileColumns = 256
	tileTerms   = 4
)

// byTiles computes results in tiles, which workers share, as a large workload takes seconds on one; with each tile the
// sums that are rounded to it, if any.
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
			extent = manyColumns(axis.Extent)
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

// byTerms puts a tile's loops inside those over the terms of its sums, but for a few terms at a time.
func byTerms(s *schedule.Schedule, g *schedule.Stage) error {
	_, last := lastLong(g.Reduce)
	if last < 0 {
		last = 0
	}
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

// loops are those over the terms of a stage, or over its results.
func loops(g *schedule.Stage, terms bool) (ids []int) {
	for _, l := range g.Leaves {
		if l.Reduce == terms {
			ids = append(ids, l.ID)
		}
	}
	return ids
}

// lastLong are the last two of the axes that are longer than one; -1 where there is none.
func lastLong(axes []*expr.Var) (before, last int) {
	before, last = -1, -1
	for k, axis := range axes {
		if axis.Extent > 1 {
			before, last = last, k
		}
	}
	return before, last
}

// manyColumns divides a row of results of some length: all of it where no divisor is large enough to be worthwhile.
func manyColumns(extent int64) int64 {
	if d := divisorAtMost(extent, tileColumns); d >= tileColumns/8 {
		return d
	}
	return extent
}

// divisorAtMost is the largest divisor of n that is not above limit.
func divisorAtMost(n, limit int64) int64 {
	d := min(n, limit)
	for n%d != 0 {
		d--
	}
	return d
}
