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
	var roots, begins [][]int64 // by sample
	for s := range v.index {
		x := v.in(s)
		if x.Alias != v.inSample(s, v.in(0).Alias) {
			return fmt.Errorf("it lies in another value with %s than with %s", v.say(s), v.say(0))
		}
		roots = append(roots, v.emitters[s].program.Values[x.Alias].Shape)
		begins = append(begins, digits(x.Offset, roots[s]))
	}
	beginning, ok := v.forms(begins)
	ok = ok && !slices.ContainsFunc(beginning, form.shrinks) // what begins there is laid out for the most
	for s := range v.index {
		if len(roots[s]) != len(roots[0]) || !ok || !v.isSameView(s, roots) {
			return fmt.Errorf("with %s it is another part of the memory that it lies in than with %s, as where axes are joined that have open ones among them: fix an extent by --shape",
				v.say(s), v.say(0))
		}
	}
	if !v.staysInside(roots, begins) {
		return fmt.Errorf("it runs over the end of an open axis of the memory that it lies in: give that other bounds, or fix it by --shape")
	}
	if v.begin(beginning, roots[0]); v.mayMove() {
		return nil
	}
	return fmt.Errorf("where it begins depends on an extent, and what lies before it is written by a kernel, which may write more than is there: fix that extent by --shape")
}

// begin notes where a view begins, from the forms of the indices of its first element in the value that it lies in.
func (v *valueOf) begin(first []form, root []int64) {
	value := &v.emitters[0].program.Values[v.index[0]]
	value.Offset, value.Moves = 0, make([]int64, len(v.extents))
	for d, stride := range expr.RowMajorStrides(root) {
		value.Offset += first[d].plus * stride
		for k, times := range first[d].times {
			value.Moves[k] += times * stride
		}
	}
	if !slices.ContainsFunc(value.Moves, func(n int64) bool { return n != 0 }) {
		value.Moves = nil
	}
}

// mayMove reports whether a view begins at one place, is only read, or is the only one that is written elsewhere with
// other extents in an output that continues an input: kernels compute whole tiles, which may end in what lies behind.
func (v *valueOf) mayMove() bool {
	p := v.emitters[0].program
	own := p.Values[v.index[0]]
	if own.Moves == nil || !v.isWritten(v.index[0]) {
		return true
	}
	for k, other := range p.Values {
		if k != v.index[0] && other.Alias == own.Alias && other.Moves != nil && v.isWritten(k) {
			return false
		}
	}
	return slices.ContainsFunc(p.Inputs, func(in int) bool { return p.Values[in].Alias == own.Alias })
}

// isWritten reports whether a kernel computes a value of the program where it lies.
func (o *opener) isWritten(value int) bool {
	p := o.emitters[0].program
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		results := len(p.Tasks[c.Task].Workload.Outputs)
		return slices.Contains(c.Args[len(c.Args)-results:], value)
	})
}

// isSameView reports whether the elements of a view in a sample are as far from its first one, in indices of the value
// that it lies in, as they are in the first sample.
func (v *valueOf) isSameView(s int, roots [][]int64) bool {
	mine, first := v.in(s), v.in(0)
	own, others := memoryStrides(mine), memoryStrides(first)
	for k, stride := range own {
		if mine.Shape[k] > 1 && first.Shape[k] > 1 && !slices.Equal(digits(stride, roots[s]), digits(others[k], roots[0])) {
			return false
		}
	}
	return true
}

// staysInside reports whether no index of the value that a view lies in runs over along an axis that is open: with
// other extents it would do so elsewhere.
func (v *valueOf) staysInside(roots, begins [][]int64) bool {
	var shapes [][]int64
	for s := range v.index {
		shapes = append(shapes, v.in(s).Shape)
	}
	for _, at := range append(v.corners(), v.at...) {
		root, ok := v.shapeAt(roots, at)
		shape, fits := v.shapeAt(shapes, at)
		most, moves := v.shapeAt(begins, at)
		if !ok || !fits || !moves || slices.ContainsFunc(most, func(begin int64) bool { return begin < 0 }) {
			return false
		}
		if slices.Contains(shape, 0) {
			continue // no element is anywhere
		}
		for k, stride := range memoryStrides(v.in(0)) {
			for d, step := range digits(stride, roots[0]) {
				most[d] += (shape[k] - 1) * step
			}
		}
		carried := int64(0)
		for d := len(most) - 1; d >= 0; d-- {
			total := most[d] + carried
			if root[d] < 1 || total >= root[d] && varies(column(roots, d)) {
				return false
			}
			carried = total / root[d]
		}
	}
	return true
}

// shapeAt is a shape with given extents, from those in the samples.
func (v *valueOf) shapeAt(shapes [][]int64, extents []int64) ([]int64, bool) {
	forms, ok := v.forms(shapes)
	shape := make([]int64, len(forms))
	for d, f := range forms {
		shape[d] = f.value(extents)
	}
	return shape, ok
}

// forms are those of each number of lists, one of each sample.
func (o *opener) forms(lists [][]int64) (forms []form, ok bool) {
	for d := range lists[0] {
		f, ok := o.fit(column(lists, d))
		if !ok {
			return nil, false
		}
		forms = append(forms, f)
	}
	return forms, true
}

func column[T any](lists [][]T, d int) []T {
	column := make([]T, len(lists))
	for s, list := range lists {
		column[s] = list[d]
	}
	return column
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
		if !ok || slices.Min(f.times) < 0 {
			return fmt.Errorf("axis %d has %d elements with %s and %d with %s, which is no sum of extents", axis, counts[0], v.say(0), counts[1], v.say(1))
		}
		for k, times := range f.times {
			if times > 0 {
				p.Varying = append(p.Varying, program.Varying{Value: v.index[0], Axis: axis, Extent: k, Times: times, Plus: f.plus})
				f.plus = 0
			}
		}
	}
	return nil
}
