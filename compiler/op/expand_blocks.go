package op

import (
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// blockWeights are known block-quantised weights in the form of BlockMatMul.
type blockWeights struct {
	// codes are (K, N), or two per byte; scale is (blocks, N), and zero has that shape or is one number.
	codes, scale, zero *array.Array
	bits, block        int64
}

// blockMatMul returns the product of x and w.
func (e *expansion) blockMatMul(x *Value, w blockWeights) *Value {
	in := []*Value{x, e.known(w.codes), e.known(w.scale)}
	if zero := oneZero(w.zero); zero.Len() > 1 || zero.Float(0) != 0 {
		in = append(in, e.known(zero))
	}
	return e.op(BlockMatMul, attributes{intOf("bits", w.bits), intOf("block_size", w.block)}, in...)
}

// oneZero returns a single number if all zero points are equal.
func oneZero(zero *array.Array) *array.Array {
	for i := range zero.Len() {
		if zero.Float(i) != zero.Float(0) {
			return zero
		}
	}
	if zero.Len() == 0 {
		return array.Scalar(array.Float32, 0)
	}
	return array.Scalar(array.Float32, zero.Float(0))
}

// transposed returns a transposed matrix.
func (e *expansion) transposed(a *array.Array) *array.Array {
	return e.Budget().Arrange(a, []int{1, 0})
}

// depthAxis returns the axis of a product's weights that is summed over.
func depthAxis(n *Node) int64 {
	if n.Op == Gemm && n.Int("transB", 0) != 0 {
		return 1
	}
	return 0
}

// blockForm is the form of products with known weights dequantised from 8 or 4 bits, with a scale per block along
// the depth, or per column: weights stay quantised and are dequantised in the product. Deferred weights of other
// products, convolutions included, are dequantised here.
func blockForm(name string) Form {
	return Form{Name: name, Expand: expand((*expansion).productOfDequantised), Applies: func(n *Node, in []*Item) bool {
		return isBlockProduct(n, in) || len(in) > 1 && in[1] != nil && in[1].Tensor != nil && isLeft(in[1].Tensor)
	}}
}

// isLeft reports whether the dequantisation of known weights was deferred.
func isLeft(w *Value) bool { return w.Const == nil && w.From != nil && isBlockWeights(w.From) }

// transposedWeights is the form of transpositions of weights with deferred dequantisation.
var transposedWeights = Form{Name: Transpose, Expand: expand((*expansion).transposeWeights), Applies: func(n *Node, in []*Item) bool {
	return len(in) == 1 && in[0] != nil && in[0].Tensor != nil && isLeft(in[0].Tensor)
}}

func (e *expansion) transposeWeights() []*Item {
	w, from := e.tensor(0), *e.tensor(0).From
	from.floats = nil
	switch perm := e.node.Ints("perm", []int64{1, 0}); {
	case slices.Equal(perm, []int64{0, 1}):
		return only(w)
	case !slices.Equal(perm, []int64{1, 0}):
		return e.onFloatWeights(0)
	}
	for _, v := range []**Value{&from.Integer, &from.Scale, &from.Zero} {
		if *v != nil && (*v).Shape.Rank() == 2 {
			*v = e.known(e.transposed((*v).Const))
		}
	}
	from.Axis = 1 - from.Axis
	result := e.dequantisedWeights(&from, int64(onnx.DataType(w.DType)))
	if result != nil {
		result.From = &from
	}
	return only(result)
}

// isBlockProduct reports whether a product can use its weights in quantised form.
func isBlockProduct(n *Node, in []*Item) bool {
	if len(in) < 2 || in[0] == nil || in[1] == nil || in[0].Tensor == nil || in[1].Tensor == nil {
		return false
	}
	x, from := in[0].Tensor, in[1].Tensor.From
	if from == nil || x.DType == array.Float64 || x.DType != in[1].Tensor.DType || x.Const != nil || x.Shape.Rank() == 0 {
		return false
	}
	if n.Op == Conv || n.Op == Gemm && (n.Int("transA", 0) != 0 || n.Float("alpha", 1) != 1 || n.Float("beta", 1) != 1) {
		return false
	}
	return areBytes(from) && isKnown(from.Integer) && from.Integer.Shape.Rank() == 2 && !from.Integer.Shape.IsEmpty() && blocksOf(from, depthAxis(n)) > 0
}

func (e *expansion) productOfDequantised() []*Item {
	if isBlockProduct(e.node, e.in) {
		return e.productOfBlocks()
	}
	if e.node.Op == Conv && e.tensor(0) != nil && hasIntegerKernels(e.node, e.tensor(0), e.tensor(1)) {
		return e.convOfIntegers()
	}
	return e.onFloatWeights(1)
}

// minKernels is the number of quantised weights from which a convolution keeps them as integers.
const minKernels = 1 << 14

// hasIntegerKernels reports whether a convolution of floats can use its quantised kernels, with a scale for all or
// each of them.
func hasIntegerKernels(n *Node, x, w *Value) bool {
	from, rank := w.From, w.Shape.Rank()
	perKernel := from.Scale.Shape.Elements().Is(1) || from.Block == 0 && from.Axis == 0
	return perKernel && rank > 2 && w.Shape.Max()[1] > 1 && array.Elements(w.Shape.Max()) >= minKernels && !n.FloatKernels &&
		x.Const == nil && x.DType == w.DType && x.DType != array.Float64
}

// convOfIntegers returns the convolution as sums of floats times integers, which are scaled afterwards. The part of
// zero points that does not fit into bytes multiplies the sums of windows.
func (e *expansion) convOfIntegers() []*Item {
	x, from, shape := e.tensor(0), e.tensor(1).From, e.tensor(1).From.Integer.Const.Shape
	zero := e.perPosition(from.Zero, extent.Fixed(shape...), 0, 0)
	centre, rest := e.byteCentre(from.Integer, zero, append([]int64{shape[0]}, slices.Repeat([]int64{1}, len(shape)-1)...)...)
	if rest != nil && e.node.Int("group", 1) > 1 {
		return e.onFloatWeights(1)
	}
	attrs, scale := slices.Collect(maps.Values(e.node.Attrs)), e.cast(x.DType, from.Scale)
	if scale.Shape.Elements().Is(1) {
		scale = e.expand(e.reshape(scale, extent.Fixed()), extent.Fixed(shape[0]))
	}
	result := e.op(ScaledConv, attrs, x, e.narrow(from.Integer, centre), e.tensor(2), scale)
	if rest != nil {
		windows := e.op(Conv, attrs, x, e.cast(x.DType, e.ones(append([]int64{1}, shape[1:]...)...)))
		factor := e.op(Mul, nil, e.cast(x.DType, e.reshape(rest, extent.Fixed(shape[0]))), scale)
		result = e.op(Sub, nil, result, e.op(Mul, nil, windows, e.along(factor, 1, int64(len(shape)))))
	}
	return only(result)
}

// onFloatWeights applies the node's operator with an input whose dequantisation was deferred. Readers share the
// floats.
func (e *expansion) onFloatWeights(input int) []*Item {
	w := e.tensor(input)
	from := w.From
	if from.floats == nil {
		attrs := attributes{intOf("axis", from.Axis), intOf("block_size", from.Block), intOf("output_dtype", int64(onnx.DataType(w.DType)))}
		from.floats = e.as((*expansion).dequantizeLinear, attrs, from.Integer, from.Scale, from.Zero)[0].Tensor
	}
	in := e.tensors()
	in[input] = from.floats
	return only(e.itself(in...))
}

// blocksOf returns the number of positions along the depth that share a scale; 0 if there is no such number, or
// blocks lie along another axis.
func blocksOf(from *Dequantised, depth int64) int64 {
	axis, all := from.Axis, from.Integer.Const.Shape[depth]
	switch {
	case from.Zero != nil && from.Zero.Const.Len() != from.Scale.Const.Len():
		return 0
	case from.Scale.Const.Len() == 1, from.Block == 0 && axis == 1-depth:
		return all
	case from.Block > 1 && axis == depth:
		return min(from.Block, all)
	}
	return 0
}

// isBlockWeights reports whether the dequantisation of weights can be deferred to products: known bytes with a scale
// per position on an axis or, in matrices, per whole block.
func isBlockWeights(from *Dequantised) bool {
	x, scale, rank := from.Integer, from.Scale, int64(from.Integer.Shape.Rank())
	if !areBytes(from) || !isKnown(x) || rank < 2 || x.Shape.IsEmpty() {
		return false
	}
	axis := from.Axis
	switch {
	case axis < 0 || axis >= rank:
		return false
	case from.Block == 0 || scale.Const.Len() == 1:
		return true
	case rank > 2:
		return false
	}
	want := slices.Clone(x.Const.Shape)
	want[axis] /= max(1, from.Block)
	return from.Block > 1 && x.Const.Shape[axis]%from.Block == 0 && slices.Equal(scale.Const.Shape, want) &&
		(from.Zero == nil || slices.Equal(from.Zero.Const.Shape, want))
}

func (e *expansion) productOfBlocks() []*Item {
	from, depth := e.tensor(1).From, depthAxis(e.node)
	codes, shift := unsigned(from.Integer.Const)
	if shift > 8 && isZero(from.Zero) {
		codes, shift = from.Integer.Const, 0
	}
	block := blocksOf(from, depth)
	scale := e.everyBlock(from.Scale.Const, codes.Shape, depth, block)
	zero := array.New(array.Float32)
	if from.Zero != nil {
		zero = e.everyBlock(from.Zero.Const, codes.Shape, depth, block)
	}
	zero = shifted(zero, shift)
	if depth == 1 {
		codes = e.transposed(codes)
	}
	w := blockWeights{codes: codes, scale: scale, zero: zero, bits: 8, block: block}
	if shift == 8 || codes.DType == array.Uint8 && shift == 0 && slices.Max(codes.Data) < 16 {
		w.codes, w.bits = PairsOfRows(codes), 4
	}
	result := e.blockMatMul(e.tensor(0), w)
	if bias := e.tensor(2); bias != nil {
		result = e.op(Add, nil, result, bias)
	}
	return only(result)
}

// shifted returns zero points plus a number; bytes stay bytes.
func shifted(zero *array.Array, by float64) *array.Array {
	floats, bytes, fit := array.New(array.Float32, zero.Shape...), array.New(array.Uint8, zero.Shape...), true
	for i := range zero.Len() {
		z := zero.Float(i) + by
		floats.SetFloat(i, z)
		bytes.SetFloat(i, z)
		fit = fit && bytes.Float(i) == z
	}
	if fit {
		return bytes
	}
	return floats
}

// unsigned returns 8-bit integers plus a shift that makes them non-negative: 8 for those of 4 bits.
func unsigned(a *array.Array) (codes *array.Array, shift float64) {
	if a.DType == array.Uint8 {
		return a, 0
	}
	codes = array.New(array.Uint8, a.Shape...)
	by := byte(8)
	for _, b := range a.Data {
		if int8(b) < -8 || int8(b) > 7 {
			by = 128
		}
	}
	for i, b := range a.Data {
		codes.Data[i] = b + by
	}
	return codes, float64(by)
}

// everyBlock returns scales or zero points of weights as (blocks, N), one for each block of a column.
func (e *expansion) everyBlock(a *array.Array, shape []int64, depth, block int64) *array.Array {
	blocks, columns := (shape[depth]-1)/block+1, shape[1-depth]
	if a.Len() == blocks*columns && len(a.Shape) == 2 {
		if depth == 1 {
			return e.transposed(a)
		}
		return a
	}
	e.Budget().Bytes(blocks * columns * a.DType.Bytes())
	all := array.New(a.DType, blocks, columns)
	for i, size := int64(0), a.DType.Bytes(); i < all.Len(); i++ {
		copy(all.Data[i*size:(i+1)*size], a.Data[i%columns%a.Len()*size:])
	}
	return all
}
