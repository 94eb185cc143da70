package layout

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
	"github.com/tilth-dev/tilth/compiler/program"
)

// Place is the location of a value: in the memory of root, at offset elements, with strides in elements for the
// value's axes in memory order.
type Place struct {
	Root    *graph.Value
	Offset  extent.Extent
	Strides []int64
}

// Of traces a value to its root; ok is false if the value's elements have no strides there, because a reshape
// merges axes with gaps between them.
func Of(v *graph.Value) (p Place, ok bool) {
	if v.Within == nil {
		return Place{Root: v, Strides: expr.RowMajorStrides(Physical(v))}, true
	}
	if p, ok = Of(v.Within.Of); !ok {
		return p, false
	}
	if v.Within.Begin == nil {
		p.Strides, ok = reshapeStrides(Physical(v.Within.Of), p.Strides, Physical(v))
		return p, ok
	}
	for k, b := range v.Within.Begin {
		p.Offset = p.Offset.Plus(b.Times(extent.Of(p.Strides[k])))
	}
	return p, true
}

// Physical returns the value's shape in memory order.
func Physical(v *graph.Value) []int64 { return op.Physical(v.Shape.Max(), v.Layout) }

// IsDense reports whether elements of the given shape are contiguous; axes of extent one do not matter.
func (p Place) IsDense(shape []int64) bool {
	for k, s := range expr.RowMajorStrides(shape) {
		if shape[k] != 1 && p.Strides[k] != s {
			return false
		}
	}
	return true
}

// ArgumentStrides returns the strides of a kernel argument, or nil if the value is dense and separate in memory.
func ArgumentStrides(v *graph.Value) []int64 {
	if p, _ := Of(v); !p.IsDense(Physical(v)) || !isAligned(p.Offset, v.InMemory().Bytes()) {
		return p.Strides
	}
	return nil
}

// isAligned reports whether a start, in elements, is aligned in each iteration of the loops around it.
func isAligned(start extent.Extent, bytes int64) bool {
	plus, times, ok := start.Linear()
	for s, n := range times {
		ok = ok && graph.LoopOf(s) != nil && n*bytes%program.Alignment == 0
	}
	return ok && plus*bytes%program.Alignment == 0
}

// axis is a number of elements at equal distances.
type axis struct{ extent, stride int64 }

// runs returns the axes of a tensor after merging those that are contiguous; axes of extent one are dropped.
func runs(shape, strides []int64) []axis {
	var list []axis
	for k, e := range shape {
		last := len(list) - 1
		switch {
		case e == 1:
		case last >= 0 && list[last].stride == strides[k]*e:
			list[last] = axis{list[last].extent * e, strides[k]}
		default:
			list = append(list, axis{e, strides[k]})
		}
	}
	return list
}

// reshapeStrides returns the strides of the same elements in another shape; ok is false if none exist.
func reshapeStrides(in, strides, out []int64) (reshaped []int64, ok bool) {
	axes := runs(in, strides)
	reshaped = make([]int64, len(out))
	at := axis{1, 1} // the rest of the current run, and the next stride
	for k, e := range slices.Backward(out) {
		if at.extent == 1 && e > 1 {
			at, axes = axes[len(axes)-1], axes[:len(axes)-1]
		}
		if at.extent%e != 0 {
			return nil, false
		}
		reshaped[k] = at.stride
		at = axis{at.extent / e, at.stride * e}
	}
	return reshaped, true
}

// viewsOf returns the values in v's memory that readers of v create: reshapes, transpositions and parts.
func viewsOf(readers map[*graph.Value][]*graph.Node, v *graph.Value) []*graph.Value {
	var list []*graph.Value
	for _, n := range readers[v] {
		if w := n.Result.Within; w != nil && w.Of == v {
			list = append(list, n.Result)
			list = append(list, viewsOf(readers, n.Result)...)
		}
	}
	return list
}

func anyOutput(g *graph.Graph, values []*graph.Value) bool {
	return slices.ContainsFunc(values, g.IsOutput)
}
