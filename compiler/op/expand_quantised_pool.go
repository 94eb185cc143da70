package op

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// windowAttributes are the attributes of a pooling that define its windows.
var windowAttributes = []string{"kernel_shape", "strides", "pads", "auto_pad", "ceil_mode"}

// qLinearGlobalAveragePool sums the integers of each image, which is exact. The factor of the sum is the ratio of
// the scales divided by the number of elements; the zero point is added after rounding.
func (e *expansion) qLinearGlobalAveragePool() []*Item {
	x, zero := e.tensor(0), e.oneForAll(e.tensor(2))
	e.refuseChannelsLast()
	sums := e.op(ImageSum, nil, x)
	count := e.op("ReduceProd", attributes{intOf("keepdims", 0)}, e.spatial(x))
	if !isZero(zero) {
		sums = e.op(Sub, nil, sums, e.op(Mul, nil, e.toInt32(zero), e.toInt32(count)))
	}
	factor := e.op(Div, nil, e.oneForAll(e.tensor(1)), e.op(Mul, nil, e.oneForAll(e.tensor(3)), e.toFloat32(count)))
	result := e.op(Mul, nil, e.toFloat32(sums), factor)
	return only(e.op(Quantize, attributes{intOf("to", e.resultType(4))}, result, e.scalar(array.Float32, 1), e.oneForAll(e.tensor(4))))
}

// qLinearAveragePool sums the integers of each window, divides by their number, scales, and rounds with the zero
// point included, so that each schedule gives the same bytes. ONNX Runtime sums floats, whose rounding errors may
// resolve ties of the mean differently.
func (e *expansion) qLinearAveragePool() []*Item {
	e.refuseChannelsLast()
	x, zero := e.tensor(0), e.oneForAll(e.tensor(2))
	var window attributes
	for _, name := range windowAttributes {
		if a := e.node.Attrs[name]; a != nil {
			window = append(window, a)
		}
	}
	size := array.Elements(e.node.Ints("kernel_shape", nil))
	mean := e.op(Div, nil, e.toFloat32(e.windowSums(x, zero, window, size)), e.toFloat32(e.windowCounts(x, window, size)))
	result := e.op(Mul, nil, mean, e.op(Div, nil, e.oneForAll(e.tensor(1)), e.oneForAll(e.tensor(3))))
	attrs := attributes{intOf("to", e.resultType(4)), intOf("round_last", 1)}
	return only(e.op(Quantize, attrs, result, e.scalar(array.Float32, 1), e.oneForAll(e.tensor(4))))
}

// windowSums returns the sums over each window of size elements minus the zero point, which padding equals.
func (e *expansion) windowSums(x, zero *Value, window attributes, size int64) *Value {
	if !isKnown(zero) {
		return e.op(WindowSum, window, e.centred(x, zero))
	}
	if isZero(zero) {
		return e.op(WindowSum, window, x)
	}
	taken := e.scalar(array.Int32, float64(size*zero.Const.Int(0)))
	padded := append(slices.Clone(window), intOf("fill", zero.Const.Int(0)))
	return e.op(Sub, nil, e.op(WindowSum, padded, x), taken)
}

// windowCounts returns the number of counted elements in each window: all size of them, or those of the image.
func (e *expansion) windowCounts(x *Value, window attributes, size int64) *Value {
	auto := e.node.Text("auto_pad", "NOTSET")
	inside := (auto == "NOTSET" || auto == "" || auto == "VALID") && e.node.Int("ceil_mode", 0) == 0 &&
		!slices.ContainsFunc(e.node.Ints("pads", nil), func(p int64) bool { return p != 0 })
	if inside || e.node.Int("count_include_pad", 0) != 0 {
		return e.scalar(array.Float32, float64(size))
	}
	shape := e.op(Concat, attributes{intOf("axis", 0)}, e.ints(1, 1), e.spatial(x))
	return e.op(WindowSum, window, e.op(Expand, nil, e.scalar(array.Int32, 1), shape))
}

// spatial returns the extents of a value's axes after the first two.
func (e *expansion) spatial(x *Value) *Value {
	return e.op(Shape, attributes{intOf("start", 2)}, x)
}

// refuseChannelsLast fails for an axis order that ONNX Runtime chooses when it optimises a model.
func (e *expansion) refuseChannelsLast() {
	if e.node.Int("channels_last", 0) != 0 {
		e.fail("channels_last is not supported: save the model before ONNX Runtime optimises it")
	}
}
