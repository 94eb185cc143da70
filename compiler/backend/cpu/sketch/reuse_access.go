package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Access describes a tensor that a reduction reads, or its result, by the part that a range of each axis touches.
type Access struct {
	ElementBytes int64
	// Shape is the tensor's shape. Packed tensors are contiguous regardless of it.
	Shape  []int64
	Packed bool
	// Dims holds the coefficient of each axis per dimension, spatial axes first, then those of the reduction. For an
	// axis with a non-affine index it is the dimension's extent, so that any range touches everything.
	Dims [][]int64
	// Group is the number of values of the axis Grouped that read the same elements. Groups holds the distance
	// between groups along each dimension. They are 0 and nil if Dims describe the axis completely.
	Group   int64
	Grouped int
	Groups  []int64
	// Joint lists the axes flattened into the last of them, and Rows the extents of all axes before; nil for none.
	Joint []int
	Rows  []int64
}

// Accesses returns those of a reduction, the result last.
func Accesses(s *schedule.Schedule, acc *schedule.Stage, packed []*expr.Tensor) []Access {
	axes := append(append([]*expr.Var{}, acc.Axes...), acc.Reduce...)
	var list []Access
	for _, l := range expr.Loads(acc.Body) {
		a := Access{ElementBytes: l.Tensor.DType.Bytes(), Shape: l.Tensor.Shape}
		a.Packed = slices.Contains(packed, l.Tensor)
		for d, x := range l.Index {
			a.Dims = append(a.Dims, coefficients(x, axes, l.Tensor.Shape[d]))
		}
		list = append(list, a)
	}
	return append(list, resultAccess(acc, len(axes)))
}

// EndAccesses returns those of the stages that a nest stores, each an elementwise map of the previous one: other
// non-constant reads, and all results but the last, which Accesses includes.
func EndAccesses(s *schedule.Schedule, acc *schedule.Stage, stored []*schedule.Stage) []Access {
	var list []Access
	axes := len(acc.Axes) + len(acc.Reduce)
	for k, g := range stored {
		for _, l := range expr.Loads(g.Body) {
			if g == acc || l.Tensor.Role == expr.Constant || s.Producer(l.Tensor) != nil {
				continue
			}
			a := Access{ElementBytes: l.Tensor.DType.Bytes(), Shape: l.Tensor.Shape}
			for d, x := range l.Index {
				a.Dims = append(a.Dims, append(coefficients(x, g.Axes, l.Tensor.Shape[d]), make([]int64, len(acc.Reduce))...))
			}
			list = append(list, a)
		}
		if k < len(stored)-1 {
			list = append(list, resultAccess(g, axes))
		}
	}
	return list
}

// resultAccess returns what a stage stores, as a function of axes, of which its own come first.
func resultAccess(g *schedule.Stage, axes int) Access {
	result := Access{ElementBytes: g.Tensor.DType.Bytes(), Shape: g.Tensor.Shape}
	for k := range g.Axes {
		row := make([]int64, axes)
		row[k] = 1
		result.Dims = append(result.Dims, row)
	}
	return result
}

func coefficients(x expr.Expr, axes []*expr.Var, extent int64) []int64 {
	row := make([]int64, len(axes))
	l := expr.Linearize(x)
	for k, v := range axes {
		c, linear := l.Coef(v)
		if row[k] = max(c, -c); !linear {
			row[k] = extent
		}
	}
	return row
}

// maxApart is the maximum distance in elements between neighbours' reads for which few vectors hold the data of a
// vector.
const maxApart = 4

// GroupOf returns the number of consecutive values of an axis for which a load reads the same elements, as the
// channels of a convolution's group do: the load uses the axis only in a quotient. It returns 1 if neighbours read
// elements that are a few apart, as groups of one channel with several inputs do, and 0 if the load uses the axis
// otherwise.
func GroupOf(l *expr.Load, axis *expr.Var) int64 {
	group := int64(0)
	for _, x := range l.Index {
		for _, t := range expr.Linearize(x).Terms {
			if !expr.Uses(t.Atom, axis) {
				continue
			}
			if t.Atom == expr.Expr(axis) && t.Coef > 1 && t.Coef <= maxApart && group <= 1 {
				group = 1
				continue
			}
			n, ok := t.Atom.(*expr.Binary)
			if !ok || n.Op != expr.FloorDiv || n.A != expr.Expr(axis) {
				return 0
			}
			by, ok := n.B.(*expr.Int)
			if !ok || group != 0 && group != by.Value {
				return 0
			}
			group = by.Value
		}
	}
	return group
}

// Between returns the distance in a dimension between the first elements of two groups of an axis, or 0 if the axis
// does not affect the index.
func Between(index expr.Expr, axis *expr.Var) int64 {
	for _, t := range expr.Linearize(index).Terms {
		if expr.Uses(t.Atom, axis) {
			return max(t.Coef, -t.Coef)
		}
	}
	return 0
}

// MovesWith reports whether an axis affects what is read.
func (a *Access) MovesWith(axis int) bool {
	return slices.ContainsFunc(a.Dims, func(row []int64) bool { return row[axis] != 0 })
}

// Step returns the distance in bytes between reads of neighbours along an axis in a tensor of the given shape.
func (a *Access) Step(axis int, shape []int64) int64 {
	step, stride := int64(0), a.ElementBytes
	for d := len(shape) - 1; d >= 0; d-- {
		step += a.Dims[d][axis] * stride
		stride *= shape[d]
	}
	return step
}

// Touched returns how many cache lines and pages the ranges of the axes touch.
func (a *Access) Touched(extents []int64, lineBytes int64) (lines, pages float64) {
	var few [8]int64 // ranks are small: avoids an allocation
	return cost.Touched(a.Shape, a.box(few[:0], extents), a.ElementBytes, lineBytes, a.Packed)
}

// run returns how many contiguous bytes the ranges of the axes touch.
func (a *Access) run(extents []int64) int64 {
	var few [8]int64
	return cost.ContiguousRun(a.Shape, a.box(few[:0], extents), a.ElementBytes, a.Packed)
}

// box appends how many elements of each dimension the ranges of the axes reach.
func (a *Access) box(list, extents []int64) []int64 {
	for d := range a.Shape {
		list = append(list, a.Extent(d, extents))
	}
	return list
}

// Elements returns how many elements the ranges of the axes reach.
func (a *Access) Elements(extents []int64) float64 {
	n := 1.0
	for d := range a.Shape {
		n *= float64(a.Extent(d, extents))
	}
	return n
}

// Extent returns how many elements of dimension d the ranges of the axes reach.
func (a *Access) Extent(d int, extents []int64) int64 {
	reach := int64(1)
	for k, c := range a.Dims[d] {
		reach += c * (a.Along(k, extents) - 1)
	}
	if a.Group > 0 {
		reach += a.Groups[d] * ((extents[a.Grouped] - 1) / a.Group)
	}
	return min(reach, a.Shape[d])
}

// MovesWithAny reports whether one of the axes from first up to end affects what is read.
func (a *Access) MovesWithAny(first, end int) bool {
	for axis := first; axis < end; axis++ {
		if a.MovesWith(axis) {
			return true
		}
	}
	return false
}

// Along returns how many positions a range of the joint axes covers along axis k.
func (a *Access) Along(k int, extents []int64) int64 {
	at := slices.Index(a.Joint, k)
	if at < 0 {
		return extents[k]
	}
	within := int64(1)
	for _, later := range a.Joint[at+1:] {
		within *= a.Rows[later]
	}
	return min(a.Rows[k], sketch.CeilDiv(extents[a.Joint[len(a.Joint)-1]], within))
}
