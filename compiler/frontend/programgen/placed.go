package programgen

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
)

// valueOf is a value across all samples.
type valueOf struct {
	*opener
	// index holds its number per sample.
	index []int
}

// in returns the value in a sample.
func (v *valueOf) in(sample int) program.Value {
	return v.emitters[sample].program.Values[v.index[sample]]
}

// check rejects a value that differs between samples: its elements have other places within the containing value,
// or a smaller constant is not a part of the larger one.
func (v *valueOf) check() error {
	first := v.in(0)
	for s := range v.index {
		x := v.in(s)
		switch {
		case x.DType != first.DType || len(x.Shape) != len(first.Shape) || (x.Data == nil) != (first.Data == nil) || (x.Alias < 0) != (first.Alias < 0):
			return fmt.Errorf("its type, rank or storage differs between %s and %s", v.say(s), v.say(0))
		case x.Data != nil && !isCorner(x.Data, first.Data):
			return fmt.Errorf("as a constant with %s it is not a prefix of that with %s: fix an extent with --shape", v.say(s), v.say(0))
		}
	}
	if first.Alias < 0 {
		return nil
	}
	return v.checkView()
}

// isCorner reports whether an array is a prefix of another along each axis.
func isCorner(part, whole *array.Array) bool {
	for k, e := range part.Shape {
		if e > whole.Shape[k] {
			return false
		}
	}
	return bytes.Equal(whole.Corner(part.Shape).Data, part.Data)
}

// checkView rejects a view whose elements depend on the extents.
func (v *valueOf) checkView() error {
	var at view
	for s := range v.index {
		x := v.in(s)
		if x.Alias != v.inSample(s, v.in(0).Alias) {
			return fmt.Errorf("it is stored in different values with %s and with %s", v.say(s), v.say(0))
		}
		at.add(v.emitters[s].program.Values[x.Alias].Shape, x.Offset, x.Shape, memoryStrides(x))
	}
	beginning, ok := v.forms(at.begins)
	ok = ok && !slices.ContainsFunc(beginning, program.Form.Shrinks) // the start depends on the maximum
	for s := range v.index {
		if !ok || !at.isSame(s) {
			return fmt.Errorf("its storage differs between %s and %s, such as where open axes are joined: fix an extent with --shape",
				v.say(s), v.say(0))
		}
	}
	if !v.staysInside(at) {
		return fmt.Errorf("it exceeds an open axis of its storage: change the bounds of that axis, or fix it with --shape")
	}
	value, first := &v.emitters[0].program.Values[v.index[0]], v.offset(beginning, at.roots[0])
	value.Offset, value.Moves = first.Plus, first.Times
	if !slices.ContainsFunc(value.Moves, func(n int64) bool { return n != 0 }) {
		value.Moves = nil
	}
	if v.mayMove() {
		return nil
	}
	return fmt.Errorf("its offset depends on an extent, and a kernel may overwrite what precedes it: fix that extent with --shape")
}

// view holds the places of a view in its containing value, by sample: the shape of that value, the index of the view's
// first element in it, the view's shape, and the distances between neighbours along each of its axes.
type view struct{ roots, begins, shapes, strides [][]int64 }

// add adds the next sample.
func (v *view) add(root []int64, offset int64, shape, strides []int64) {
	v.roots, v.begins = append(v.roots, root), append(v.begins, digits(offset, root))
	v.shapes, v.strides = append(v.shapes, shape), append(v.strides, strides)
}

// offset returns the offset in memory of the given shape of the element at an index.
func (o *opener) offset(index []program.Form, memory []int64) program.Form {
	offset := program.Form{Times: make([]int64, len(o.extents))}
	for d, stride := range expr.RowMajorStrides(memory) {
		offset.Plus += index[d].Plus * stride
		for k, times := range index[d].Times {
			offset.Times[k] += times * stride
		}
	}
	return offset
}

// mayMove reports whether the start of a view may depend on the extents: the view is only read, or is the only written
// part of an output that continues an input. Kernels compute whole tiles, which may overwrite elements after the view.
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

// isWritten reports whether a kernel computes a value in place.
func (o *opener) isWritten(value int) bool {
	p := o.emitters[0].program
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		results := len(p.Tasks[c.Task].Workload.Outputs)
		return slices.Contains(c.Args[len(c.Args)-results:], value)
	})
}

// isSame reports whether the offsets of a view's elements from its first one, as indices of the containing value,
// equal those in the first sample.
func (v *view) isSame(s int) bool {
	for k, stride := range v.strides[s] {
		if v.shapes[s][k] > 1 && v.shapes[0][k] > 1 && !slices.Equal(digits(stride, v.roots[s]), digits(v.strides[0][k], v.roots[0])) {
			return false
		}
	}
	return len(v.roots[s]) == len(v.roots[0])
}

// staysInside reports whether no index of the containing value wraps along an open axis, since it would wrap
// elsewhere for other extents.
func (o *opener) staysInside(v view) bool {
	for _, at := range append(o.corners(), o.at...) {
		root, ok := o.shapeAt(v.roots, at)
		shape, fits := o.shapeAt(v.shapes, at)
		largest, moves := o.shapeAt(v.begins, at)
		if !ok || !fits || !moves || slices.ContainsFunc(largest, func(begin int64) bool { return begin < 0 }) {
			return false
		}
		if slices.Contains(shape, 0) {
			continue // the view is empty
		}
		for k, stride := range v.strides[0] {
			for d, step := range digits(stride, v.roots[0]) {
				largest[d] += (shape[k] - 1) * step
			}
		}
		carried := int64(0)
		for d := len(largest) - 1; d >= 0; d-- {
			total := largest[d] + carried
			if root[d] < 1 || total >= root[d] && varies(column(v.roots, d)) {
				return false
			}
			carried = total / root[d]
		}
	}
	return true
}

// shapeAt returns a shape at the given extents, derived from those in the samples.
func (o *opener) shapeAt(shapes [][]int64, extents []int64) ([]int64, bool) {
	forms, ok := o.forms(shapes)
	shape := make([]int64, len(forms))
	for d, f := range forms {
		shape[d] = f.At(extents)
	}
	return shape, ok
}

// forms returns the form of each number in lists with one entry per sample.
func (o *opener) forms(lists [][]int64) (forms []program.Form, ok bool) {
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

// digits returns the index of the element at an offset in an array.
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

// note records the open axes of an input or output.
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
		if !ok || slices.Min(f.Times) < 0 {
			return fmt.Errorf("axis %d has %d elements with %s and %d with %s, which is not a sum of extents", axis, counts[0], v.say(0), counts[1], v.say(1))
		}
		for k, times := range f.Times {
			if times > 0 {
				p.Varying = append(p.Varying, program.Varying{Value: v.index[0], Axis: axis, Extent: k, Times: times, Plus: f.Plus})
				f.Plus = 0
			}
		}
	}
	return nil
}
