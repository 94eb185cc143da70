package lower

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// PackShape returns the shape of a packed constant.
func PackShape(dims []schedule.PackDim, shape []int64) []int64 {
	packed := make([]int64, len(dims))
	for k, d := range dims {
		switch {
		case d.Factor == 0:
			packed[k] = shape[d.Dim]
		case d.Inner:
			packed[k] = d.Factor
		default:
			packed[k] = (shape[d.Dim] + d.Factor - 1) / d.Factor
		}
	}
	return packed
}

// PackIndex returns the index of an element of the constant in the packed layout.
func PackIndex(dims []schedule.PackDim, at []expr.Expr, shape []int64) (index []expr.Expr, extents []int64) {
	for _, d := range dims {
		x := at[d.Dim]
		if d.Factor > 0 {
			op := expr.FloorDiv
			if d.Inner {
				op = expr.FloorMod
			}
			x = expr.Bin(op, x, expr.I(d.Factor))
		}
		index = append(index, x)
	}
	return index, PackShape(dims, shape)
}

// NewPack returns the workload that fills the packed layout: each packed element from its source, or zero. The
// source is the constant t itself, or the result of its transform.
func NewPack(constant int, t *expr.Tensor, transform *schedule.Transform, dims []schedule.PackDim) ir.Pack {
	given := expr.NewConstant("c", t.DType, t.Shape...)
	source := given
	if transform != nil {
		given, source = transform.Source, transform.Result
	}
	shape := PackShape(dims, t.Shape)
	packed := expr.Compute("packed", shape, func(i []expr.Expr) expr.Expr {
		at := make([]expr.Expr, len(t.Shape))
		for k, d := range dims {
			part := i[k]
			if d.Factor > 0 && !d.Inner {
				part = expr.MulE(part, expr.I(d.Factor))
			}
			if at[d.Dim] != nil {
				part = expr.AddE(at[d.Dim], part)
			}
			at[d.Dim] = part
		}
		value := source.At(at...)
		for d, extent := range t.Shape {
			if slices.ContainsFunc(dims, func(x schedule.PackDim) bool { return x.Dim == d && x.Factor > 0 && extent%x.Factor != 0 }) {
				value = expr.Sel(expr.Bin(expr.Lt, at[d], expr.I(extent)), value, expr.Zero(t.DType))
			}
		}
		return value
	})
	w, err := expr.NewWorkload([]*expr.Tensor{packed}, given)
	if err != nil {
		panic(fmt.Sprintf("lower: packing constant %d: %v", constant, err)) // ir.Pack has checked the layout
	}
	buffer := &ir.Buffer{Tensor: ir.Flat(fmt.Sprintf("p%d", constant), t.DType, array.Elements(shape)), Space: ir.Prepared}
	return ir.Pack{Constant: constant, Buffer: buffer, Workload: w, Dims: dims, Transform: transform}
}

// packLanes is the number of elements that a transform computes at a time: few, since each of its operations is
// written once per vector.
const packLanes = 4

// PackSchedule returns a schedule that computes the packed layout without a workspace, on all workers, in vectors
// along its innermost dimension. Intermediate values of a transform are computed per vector.
func PackSchedule(p ir.Pack) (*schedule.Schedule, error) {
	s := schedule.New(p.Workload)
	last := len(s.Stages) - 1
	for k := last - 1; k > 0; k-- {
		if err := s.Inline(k); err != nil {
			return nil, err
		}
	}
	leaves := s.Stages[last].Leaves
	if len(leaves) < 2 {
		return s, nil
	}
	if err := s.Parallel(last, leaves[0].ID); err != nil {
		return nil, err
	}
	row := leaves[len(leaves)-1]
	if last == 0 {
		return s, s.Vectorize(last, row.ID)
	}
	return s, vectorizeTransform(s, last, row)
}

// vectorizeTransform computes a few elements of the packed rows of stage last at a time, together with the
// intermediate values of stage 0.
func vectorizeTransform(s *schedule.Schedule, last int, row *schedule.Iter) error {
	axes := s.Stages[last].Axes
	if axes[len(axes)-1].Extent%packLanes != 0 {
		leaves := s.Stages[last].Leaves
		return s.ComputeAt(0, last, leaves[len(leaves)-1].ID)
	}
	outer, inner, err := s.Split(last, row.ID, packLanes, schedule.Peel)
	if err != nil {
		return err
	}
	if err := s.ComputeAt(0, last, outer); err != nil {
		return err
	}
	between := s.Stages[0].Leaves
	if err := s.Vectorize(0, between[len(between)-1].ID); err != nil {
		return err
	}
	return s.Vectorize(last, inner)
}
