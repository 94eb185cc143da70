package sketch

import (
	"github.com/tilth-dev/tilth/compiler/backend/cpu/footprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// access is a tensor that a reduction reads, or its result, as a function of the axes: what part of it a range of each
// axis touches.
type access struct {
	elementBytes int64
	// shape is the tensor's; packed ones are contiguous whatever their shape says.
	shape  []int64
	packed bool
	// dims has, for each dimension, the coefficient of each axis (spatial ones, then those of the reduction). That of
	// an axis in which an index is not affine is the dimension's extent, so that any range of it touches all.
	dims [][]int64
	// joint are the axes that are flattened into the last of them, and rows the extents of all axes before; nil when
	// none are.
	joint []int
	rows  []int64
}

// accesses are those of a reduction; the result is the last.
func accesses(s *schedule.Schedule, acc *schedule.Stage, packs []packable) []access {
	axes := append(append([]*expr.Var{}, acc.Axes...), acc.Reduce...)
	var list []access
	for _, l := range expr.Loads(acc.Body) {
		a := access{elementBytes: l.Tensor.DType.Bytes(), shape: l.Tensor.Shape}
		for _, p := range packs {
			a.packed = a.packed || s.Workload.Constants[p.constant] == l.Tensor
		}
		for d, x := range l.Index {
			a.dims = append(a.dims, coefficients(x, axes, l.Tensor.Shape[d]))
		}
		list = append(list, a)
	}
	return append(list, resultAccess(acc, len(axes)))
}

// endAccesses are those of the stages that a nest stores, each made from the one before element by element: what else
// the maps among them read that is no constant, and all results but the last, which accesses has.
func endAccesses(s *schedule.Schedule, acc *schedule.Stage, stored []*schedule.Stage) []access {
	var list []access
	axes := len(acc.Axes) + len(acc.Reduce)
	for k, g := range stored {
		for _, l := range expr.Loads(g.Body) {
			if g == acc || l.Tensor.Role == expr.Constant || s.Producer(l.Tensor) != nil {
				continue
			}
			a := access{elementBytes: l.Tensor.DType.Bytes(), shape: l.Tensor.Shape}
			for d, x := range l.Index {
				a.dims = append(a.dims, append(coefficients(x, g.Axes, l.Tensor.Shape[d]), make([]int64, len(acc.Reduce))...))
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
func resultAccess(g *schedule.Stage, axes int) access {
	result := access{elementBytes: g.Tensor.DType.Bytes(), shape: g.Tensor.Shape}
	for k := range g.Axes {
		row := make([]int64, axes)
		row[k] = 1
		result.dims = append(result.dims, row)
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

// groupOf is the number of consecutive values of an axis for which a load reads the same, as the channels of a group
// of a convolution read the same inputs: the load uses the axis only divided by it. 0 when the load uses it otherwise.
func groupOf(l *expr.Load, axis *expr.Var) int64 {
	group := int64(0)
	for _, x := range l.Index {
		for _, t := range expr.Linearize(x).Terms {
			if !expr.Uses(t.Atom, axis) {
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

// memoryStep is how many elements of memory lie between what a load reads for one value of an axis and for the next.
func memoryStep(l *expr.Load, axis *expr.Var) (elements int64, linear bool) {
	flat, strides := expr.I(0), l.Tensor.MemoryStrides()
	for k, x := range l.Index {
		flat = expr.AddE(flat, expr.MulE(x, expr.I(strides[k])))
	}
	return expr.Linearize(flat).Coef(axis)
}

// adjacent reports whether what a load reads for neighbouring values of an axis are neighbours in memory.
func adjacent(l *expr.Load, axis *expr.Var) bool {
	step, linear := memoryStep(l, axis)
	return linear && step == 1
}

// movesWith reports whether an axis changes what is read.
func (a *access) movesWith(axis int) bool {
	for _, row := range a.dims {
		if row[axis] != 0 {
			return true
		}
	}
	return false
}

// touched is how many cache lines and pages the ranges of the axes touch.
func (a *access) touched(extents []int64, lineBytes int64) (lines, pages float64) {
	var few [8]int64 // ranks are small: no allocation
	return footprint.Touched(a.shape, a.box(few[:0], extents), a.elementBytes, lineBytes, a.packed)
}

// run is how many bytes that the ranges of the axes touch lie in memory one after the other.
func (a *access) run(extents []int64) int64 {
	var few [8]int64
	return footprint.Run(a.shape, a.box(few[:0], extents), a.elementBytes, a.packed)
}

// box appends how many elements of each dimension the ranges of the axes reach.
func (a *access) box(list, extents []int64) []int64 {
	for d := range a.shape {
		list = append(list, a.extent(d, extents))
	}
	return list
}

// elements is how many elements the ranges of the axes reach.
func (a *access) elements(extents []int64) float64 {
	n := 1.0
	for d := range a.shape {
		n *= float64(a.extent(d, extents))
	}
	return n
}

// extent is how many elements of dimension d the ranges of the axes reach.
func (a *access) extent(d int, extents []int64) int64 {
	reach := int64(1)
	for k, c := range a.dims[d] {
		reach += c * (a.along(k, extents) - 1)
	}
	return min(reach, a.shape[d])
}
