package graph

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/op"
	"github.com/tilth-dev/tilth/compiler/program"
)

// within says in whose memory a value's elements lie.
type within struct {
	of *value
	// begin is the index of the value's first element in of, by axes in the order of memory; nil when the two are the
	// same elements in another shape.
	begin []int64
}

// place is where a value lies: in the memory of root, offset elements behind its beginning, with strides in elements
// along the value's axes in the order of memory.
type place struct {
	root    *value
	offset  int64
	strides []int64
}

// placeOf follows a value to its root; ok is false when the value's elements have no strides there, because a reshape
// joins axes between which there are gaps.
func placeOf(v *value) (p place, ok bool) {
	if v.within == nil {
		return place{root: v, strides: expr.RowMajorStrides(physical(v))}, true
	}
	if p, ok = placeOf(v.within.of); !ok {
		return p, false
	}
	if v.within.begin == nil {
		p.strides, ok = reshapeStrides(physical(v.within.of), p.strides, physical(v))
		return p, ok
	}
	for k, b := range v.within.begin {
		p.offset += b * p.strides[k]
	}
	return p, true
}

// physical is the value's shape in the order of memory.
func physical(v *value) []int64 { return op.Physical(v.Shape, v.layout) }

// isDense reports whether elements of the given shape lie without gaps; axes of extent one do not matter.
func (p place) isDense(shape []int64) bool {
	for k, s := range expr.RowMajorStrides(shape) {
		if shape[k] != 1 && p.strides[k] != s {
			return false
		}
	}
	return true
}

// argumentStrides are the strides that a kernel must know of: nil where the value looks like one that lies alone in
// memory.
func argumentStrides(v *value) []int64 {
	p, _ := placeOf(v)
	if p.isDense(physical(v)) && p.offset*v.DType.Bytes()%program.Alignment == 0 {
		return nil
	}
	return p.strides
}

// axis is some elements at equal distances.
type axis struct{ extent, stride int64 }

// runs are the axes that a tensor has when those that lie in memory as one are one; none has extent one.
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

// reshapeStrides are the strides of the same elements in another shape of as many; ok is false when there are none.
func reshapeStrides(in, strides, out []int64) (reshaped []int64, ok bool) {
	axes := runs(in, strides)
	reshaped = make([]int64, len(out))
	at := axis{1, 1} // what is left of the current run, and the next stride
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

// viewsOf are the values that lie in v's memory as far as readers of v make them: reshapes, transpositions and parts.
func viewsOf(readers map[*value][]*node, v *value) []*value {
	var list []*value
	for _, n := range readers[v] {
		if w := n.out.within; w != nil && w.of == v {
			list = append(list, n.out)
			list = append(list, viewsOf(readers, n.out)...)
		}
	}
	return list
}

// isPart reports whether the value is a part of another one.
func isPart(v *value) bool { return v.within != nil && v.within.begin != nil }

func anyOutput(g *graph, values []*value) bool { return slices.ContainsFunc(values, g.isOutput) }
