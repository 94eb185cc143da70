package op

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// A layout is the order of a value's axes in memory: entry k is the axis at position k, slowest first. For
// constants, axes of extent 1 may be omitted.

// RowMajor returns the layout of ONNX: axes in order.
func RowMajor(rank int) []int {
	l := make([]int, rank)
	for k := range l {
		l[k] = k
	}
	return l
}

// ChannelsLast returns the layout N, spatial axes, C; for a 4-D value NHWC.
func ChannelsLast(rank int) []int {
	if rank < 3 {
		return RowMajor(rank)
	}
	l := append([]int{0}, RowMajor(rank)[2:]...)
	return append(l, 1)
}

// Physical returns the shape in memory of a value of the given shape.
func Physical(shape []int64, layout []int) []int64 {
	p := make([]int64, len(layout))
	for k, axis := range layout {
		p[k] = shape[axis]
	}
	return p
}

// SameLayout reports whether two layouts of a value put every element at the same place.
func SameLayout(shape []int64, a, b []int) bool {
	return slices.Equal(withoutUnits(shape, a), withoutUnits(shape, b))
}

// withoutUnits drops the axes of extent 1 from a layout.
func withoutUnits(shape []int64, layout []int) []int {
	var l []int
	for _, axis := range layout {
		if shape[axis] != 1 {
			l = append(l, axis)
		}
	}
	return l
}

// dropAxes returns the layout after some axes are removed and the others renumbered.
func dropAxes(layout []int, dropped []bool) []int {
	number := make([]int, len(dropped))
	kept := 0
	for k, d := range dropped {
		number[k] = kept
		if !d {
			kept++
		}
	}
	l := []int{}
	for _, axis := range layout {
		if !dropped[axis] {
			l = append(l, number[axis])
		}
	}
	return l
}

// Arrange returns a row-major array in a layout, with the physical shape. It charges for a copy, unless the order of
// elements is the same and the result shares them.
func (b *Budget) Arrange(a *array.Array, layout []int) *array.Array {
	shape := Physical(a.Shape, layout)
	if SameLayout(a.Shape, layout, RowMajor(len(a.Shape))) {
		return &array.Array{DType: a.DType, Shape: shape, Data: a.Data}
	}
	out := b.array(a.DType, shape...)
	stride := make([]int64, len(a.Shape))
	step := a.DType.Bytes()
	for k := len(a.Shape) - 1; k >= 0; k-- {
		stride[k] = step
		step *= a.Shape[k]
	}
	strides := make([]int64, len(layout))
	for k, axis := range layout {
		strides[k] = stride[axis]
	}
	gatherStrided(out, a.Data, strides)
	return out
}

// gatherStrided fills out with the elements of data at the given byte strides. out is not shared yet, and data is
// constant. The race detector is disabled, since it would dominate the time of an import.
//
//go:norace
func gatherStrided(out *array.Array, data []byte, strides []int64) {
	size := out.DType.Bytes()
	last := len(out.Shape) - 1
	index := make([]int64, len(out.Shape))
	var from int64
	for to := int64(0); to < int64(len(out.Data)); {
		p := from
		for range out.Shape[last] {
			switch size { // a constant size lets the copy become one move
			case 4:
				copy(out.Data[to:to+4], data[p:p+4])
			default:
				copy(out.Data[to:to+size], data[p:p+size])
			}
			to += size
			p += strides[last]
		}
		for k := last - 1; k >= 0; k-- {
			index[k]++
			from += strides[k]
			if index[k] < out.Shape[k] {
				break
			}
			from -= strides[k] * out.Shape[k]
			index[k] = 0
		}
	}
}
