// Reuse estimates what loops around a tile wait for: which part of each tensor they touch, and how often
// caches are filled with it. It is what sketches can ask for thousands of points a second, from numbers alone; package
// cost asks the same of whole schedules. Begin with Nest.Waiting.

package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Access is a tensor that a reduction reads, or its result, as a function of the axes: what part of it a range of each
// axis touches.
type Access struct {
	ElementBytes int64
	// Shape is the tensor's; packed ones are contiguous whatever their shape says.
	Shape  []int64
	Packed bool
	// Dims has, for each dimension, the coefficient of each axis (spatial ones, then those of the reduction). That of
	// an axis in which an index is not affine is the dimension's extent, so that any range of it touches all.
	Dims [][]int64
	// Group is how many values of the axis Grouped read the same, and Groups how far one group is from the next along
	// each dimension; 0 and nil where the axis moves what is read as Dims say.
	Group   int64
	Grouped int
	Groups  []int64
	// Joint are the axes that are flattened into the last of them, and Rows the extents of all axes before; nil when
	// none are.
	Joint []int
	Rows  []int64
}

// Accesses are those of a reduction; the result is the last.
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

// EndAccesses are those of the stages that a nest stores, each made from the one before element by element: what else
// the maps among them read that is no constant, and all results but the last, which accesses has.
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

// resultAccess is what a stage stores, as a function of so many axes, of which its own are the first.
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

// mostApart is how many elements neighbours may read apart, so that few vectors have what those of a vector read.
const mostApart = 4

// GroupOf is the number of consecutive values of an axis for which a load reads the same, as the channels of a group
// of a convolution read the same inputs: the load uses the axis only divided by it. 1 when neighbours read elements
// that lie a few apart, as groups of one channel with several inputs do; 0 when the load uses the axis otherwise.
func GroupOf(l *expr.Load, axis *expr.Var) int64 {
	group := int64(0)
	for _, x := range l.Index {
		for _, t := range expr.Linearize(x).Terms {
			if !expr.Uses(t.Atom, axis) {
				continue
			}
			if t.Atom == expr.Expr(axis) && t.Coef > 1 && t.Coef <= mostApart && group <= 1 {
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

// Between is how many elements of a dimension lie between the first ones of two groups of an axis; 0 where it does not
// move the index.
func Between(index expr.Expr, axis *expr.Var) int64 {
	for _, t := range expr.Linearize(index).Terms {
		if expr.Uses(t.Atom, axis) {
			return max(t.Coef, -t.Coef)
		}
	}
	return 0
}

// MovesWith reports whether an axis changes what is read.
func (a *Access) MovesWith(axis int) bool {
	for _, row := range a.Dims {
		if row[axis] != 0 {
			return true
		}
	}
	return false
}

// Step is how many bytes lie between what neighbours along an axis read of a tensor of the given shape.
func (a *Access) Step(axis int, shape []int64) int64 {
	step, stride := int64(0), a.ElementBytes
	for d := len(shape) - 1; d >= 0; d-- {
		step += a.Dims[d][axis] * stride
		stride *= shape[d]
	}
	return step
}

// Touched is how many cache lines and pages the ranges of the axes touch.
func (a *Access) Touched(extents []int64, lineBytes int64) (lines, pages float64) {
	var few [8]int64 // ranks are small: no allocation
	return cost.Touched(a.Shape, a.box(few[:0], extents), a.ElementBytes, lineBytes, a.Packed)
}

// run is how many bytes that the ranges of the axes touch lie in memory one after the other.
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

// Elements is how many elements the ranges of the axes reach.
func (a *Access) Elements(extents []int64) float64 {
	n := 1.0
	for d := range a.Shape {
		n *= float64(a.Extent(d, extents))
	}
	return n
}

// Extent is how many elements of dimension d the ranges of the axes reach.
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

// MovesWithAny reports whether one of the axes from first up to end changes what is read.
func (a *Access) MovesWithAny(first, end int) bool {
	for axis := first; axis < end; axis++ {
		if a.MovesWith(axis) {
			return true
		}
	}
	return false
}

// Along is how many positions a range of the joint axes covers along axis k.
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
