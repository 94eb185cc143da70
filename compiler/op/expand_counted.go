package op

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// counted returns the first elements of a value on an axis, as many as a scalar count, from none to all. A computed
// count is an open extent.
func (e *expansion) counted(v *Value, axis int64, count *Value) *Value {
	switch {
	case v == nil || v.Shape.IsEmpty():
		return v
	case count.Const != nil:
		return e.slice(v, axis, 0, count.Const.Int(0))
	case count.Numbers != nil:
		return e.span(v, axis, extent.Of(0), count.Numbers[0].Of)
	}
	return e.span(v, axis, extent.Of(0), e.Counted(count, v.Shape.At(int(axis)).Max()))
}

// trues counts the true elements of bools, as a scalar.
func (e *expansion) trues(mask *Value) *Value {
	return e.op(ReduceSum, attributes{intOf("keepdims", 0)}, e.cast(array.Int64, mask))
}

// isCounted reports whether an input has an extent that depends on data.
func isCounted(in []*Item, k int) (is bool) {
	if k >= len(in) || in[k] == nil || in[k].Tensor == nil {
		return false
	}
	for _, e := range in[k].Tensor.Shape.Extents() {
		e.Each(func(s *extent.Symbol) { is = is || s.Source != nil })
	}
	return is
}

// isComputed reports whether an input is a tensor that is not known when the model is read.
func isComputed(in []*Item, k int) bool {
	return k < len(in) && in[k] != nil && in[k].Tensor != nil && in[k].Tensor.Const == nil
}
