package op

import (
	"github.com/tilth-dev/tilth/compiler/array"
)

// open turns a value into an open one with as many elements on an axis as a scalar count, from none to all. If the
// count is known, it returns that part.
func (e *expansion) open(v *Value, axis int, count *Value) *Value {
	switch {
	case e.failed() || array.Elements(v.Shape.Fixed()) == 0:
		return v
	case count.Const != nil:
		return e.slice(v, int64(axis), 0, count.Const.Int(0))
	case v.Const != nil:
		v = e.known(v.Const)
	}
	v.Open = &Open{Axis: axis, Count: count}
	return v
}

// closed replaces the padding of a value by a scalar.
func (e *expansion) closed(v, padding *Value) *Value {
	if e.failed() || v.Open == nil {
		return v
	}
	return e.op(Close, attributes{intOf("axis", int64(v.Open.Axis))}, v, v.Open.Count, padding)
}

// trues counts the true elements of bools, as a scalar.
func (e *expansion) trues(mask *Value) *Value {
	return e.op(ReduceSum, attributes{intOf("keepdims", 0)}, e.cast(array.Int64, mask))
}

// isOpen reports whether an input's extent depends on data.
func isOpen(in []*Item, k int) bool {
	return k < len(in) && in[k] != nil && in[k].Tensor != nil && in[k].Tensor.Open != nil
}

// isComputed reports whether an input is a tensor that is not known when the model is read.
func isComputed(in []*Item, k int) bool {
	return k < len(in) && in[k] != nil && in[k].Tensor != nil && in[k].Tensor.Const == nil
}
