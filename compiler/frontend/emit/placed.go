package emit

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
)

// valueOf is a value in all samples.
type valueOf struct {
	*opener
	// index is by sample.
	index []int
}

// in is the value in a sample.
func (v *valueOf) in(sample int) program.Value {
	return v.emitters[sample].program.Values[v.index[sample]]
}

// check refuses a value that does not mean the same in all samples: elements that are at other places of the memory
// that it lies in, or constants of which the smaller is no part of the larger.
func (v *valueOf) check() error {
	first := v.in(0)
	for s := range v.index {
		x := v.in(s)
		switch {
		case x.DType != first.DType || len(x.Shape) != len(first.Shape) || (x.Data == nil) != (first.Data == nil) || (x.Alias < 0) != (first.Alias < 0):
			return fmt.Errorf("it is another with %s than with %s", v.say(s), v.say(0))
		case x.Data != nil && !isCorner(x.Data, first.Data):
			return fmt.Errorf("it is a constant that with %s is no part of what it is with %s: fix an extent by --shape", v.say(s), v.say(0))
		}
	}
	if first.Alias < 0 {
		return nil
	}
	return v.checkView()
}

// isCorner reports whether an array has the first elements of another along each axis.
func isCorner(part, whole *array.Array) bool {
	for k, e := range part.Shape {
		if e > whole.Shape[k] {
			return false
		}
	}
	return bytes.Equal(whole.Corner(part.Shape).Data, part.Data)
}

// checkView refuses a view whose elements are not the same ones of the value that it lies in, whatever the extents.
func (v *valueOf) checkView() error {
	var roots [][]int64
	for s := range v.index {
		x := v.in(s)
		if x.Alias != v.inSample(s, v.in(0).Alias) {
			return fmt.Errorf("it lies in another value with %s than with %s", v.say(s), v.say(0))
		}
		roots = append(roots, v.emitters[s].program.Values[x.Alias].Shape)
	}
	for s := range v.index {
		if len(roots[s]) != len(roots[0]) || !v.isSameView(s, roots) {
			return fmt.Errorf("with %s it is another part of the memory that it lies in than with %s, as where axes are joined that have open ones among them: fix an extent by --shape",
				v.say(s), v.say(0))
		}
	}
	if !v.staysInside(roots) {
		return fmt.Errorf("it runs over the end of an open axis of the memory that it lies in: give that other bounds, or fix it by --shape")
	}
	return nil
}

// isSameView reports whether the elements of a view in a sample have the same indices in the value that it lies in as
// they have in the first sample.
func (v *valueOf) isSameView(s int, roots [][]int64) bool {
	mine, first := v.in(s), v.in(0)
	own, others := memoryStrides(mine), memoryStrides(first)
	if !slices.Equal(digits(mine.Offset, roots[s]), digits(first.Offset, roots[0])) {
		return false
	}
	for k, stride := range own {
		if mine.Shape[k] > 1 && first.Shape[k] > 1 && !slices.Equal(digits(stride, roots[s]), digits(others[k], roots[0])) {
			return false
		}
	}
	return true
}

// staysInside reports whether no index of the value that a view lies in runs over along an axis that is open: with
// other extents it would do so elsewhere.
func (v *valueOf) staysInside(roots [][]int64) bool {
	var shapes [][]int64
	for s := range v.index {
		shapes = append(shapes, v.in(s).Shape)
	}
	for _, at := range append(v.corners(), v.at...) {
		root, ok := v.shapeAt(roots, at)
		shape, fits := v.shapeAt(shapes, at)
		if !ok || !fits {
			return false
		}
		most := digits(v.in(0).Offset, roots[0])
		for k, stride := range memoryStrides(v.in(0)) {
			for d, step := range digits(stride, roots[0]) {
				most[d] += (shape[k] - 1) * step
			}
		}
		carried := int64(0)
		for d := len(most) - 1; d >= 0; d-- {
			total := most[d] + carried
			if total >= root[d] && varies(column(roots, d)) {
				return false
			}
			carried = total / root[d]
		}
	}
	return true
}

// shapeAt is a shape with given extents, from those in the samples.
func (v *valueOf) shapeAt(shapes [][]int64, extents []int64) ([]int64, bool) {
	shape := make([]int64, len(shapes[0]))
	for d := range shape {
		f, ok := v.fit(column(shapes, d))
		if !ok {
			return nil, false
		}
		shape[d] = f.value(extents)
	}
	return shape, true
}

func column(shapes [][]int64, d int) []int64 {
	list := make([]int64, len(shapes))
	for s, shape := range shapes {
		list[s] = shape[d]
	}
	return list
}

func memoryStrides(v program.Value) []int64 {
	if v.Strides != nil {
		return v.Strides
	}
	return expr.RowMajorStrides(v.Shape)
}

// digits is the index of the element at a place in an array.
func digits(at int64, shape []int64) []int64 {
	index := make([]int64, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		index[d] = at % shape[d]
		if d == 0 {
			index[d] = at
		}
		at /= shape[d]
	}
	return index
}

// note notes the open axes of an input or output.
func (v *valueOf) note() error {
	p := v.emitters[0].program
	for axis := range v.in(0).Shape {
		counts := make([]int64, len(v.index))
		for s := range v.index {
			counts[s] = v.in(s).Shape[axis]
		}
		if !varies(counts) {
			continue
		}
		f, ok := v.fit(counts)
		of := slices.IndexFunc(f.times, func(n int64) bool { return n != 0 })
		if !ok || of < 0 || f.times[of] < 1 || slices.ContainsFunc(f.times[of+1:], func(n int64) bool { return n != 0 }) {
			return fmt.Errorf("axis %d has %d elements with %s and %d with %s, which is no multiple of one extent", axis, counts[0], v.say(0), counts[1], v.say(1))
		}
		p.Varying = append(p.Varying, program.Varying{Value: v.index[0], Axis: axis, Extent: of, Times: f.times[of], Plus: f.plus})
	}
	return nil
}
