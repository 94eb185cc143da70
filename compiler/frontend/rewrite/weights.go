package rewrite

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// QuantiseWeights returns the pass that stores known float weights as integers: 8 bits with a scale per output
// channel, or 4 bits with a float16 scale per 32 neighbours of a channel. Kernels dequantise them in registers,
// which reduces memory size and traffic to a quarter or a seventh. The pass quantises
//
//   - the matrix operand of products, as the weights of an op.BlockMatMul; this includes the kernels of 1x1
//     convolutions in 4 bits, or where the numerics round data to 8 bits;
//   - the kernels of other convolutions, as the weights of an op.ScaledConv, always in 8 bits, unless the storage
//     keeps them in floating point;
//   - the table of a Gather, with a scale per row, always in 8 bits, since few rows are read.
//
// It keeps weights that are small, have short channels or, in 4 bits, channels that are not a multiple of 32, or have
// non-finite elements. The pass calls progress, if not nil, with the number of quantised weights and the total.
func QuantiseWeights(as array.Storage, progress func(quantised, all int)) graph.Pass {
	return graph.Pass{Name: fmt.Sprintf("quantise-to-int%d", as.WeightBits), Run: op.Catching(func(g *graph.Graph) {
		q := &weightQuantiser{Graph: g, as: as, made: map[weightsUse]*quantisedWeights{}, all: map[*graph.Value]bool{}}
		var nodes []*graph.Node
		replaced := map[*graph.Value]*graph.Value{}
		for _, n := range g.Nodes {
			made := q.node(n)
			if made == nil {
				made = []*graph.Node{n}
			} else {
				replaced[n.Result] = made[len(made)-1].Result
			}
			nodes = append(nodes, made...)
		}
		g.Nodes = nodes
		g.ReplaceAll(replaced)
		if progress != nil {
			progress(q.count(), len(q.all))
		}
	})}
}

const (
	// minQuantised is the number of elements from which a scale per channel pays.
	minQuantised = 1 << 12
	// minKernels is the same for convolution kernels, each of which is cast for many positions.
	minKernels = 1 << 14
	// minNeighbours is the smallest number of neighbours that share a scale, and the exact number in 4 bits.
	minNeighbours = 32
)

// weightsUse is a constant and the way it is used.
type weightsUse struct {
	*graph.Value
	form weightsForm
}

type weightsForm uint8

const (
	// asMatrix is (K, N), and asTransposed (N, K).
	asMatrix weightsForm = iota
	asTransposed
	// asKernels is (output channels, input channels of a group, window).
	asKernels
	asTable
)

// quantisedWeights holds integers with their scales and their zero point, or nil if it is zero.
type quantisedWeights struct{ integers, scales, zero *graph.Value }

type weightQuantiser struct {
	*graph.Graph
	as array.Storage
	// made holds nil for weights that are not quantised.
	made map[weightsUse]*quantisedWeights
	all  map[*graph.Value]bool
}

// count returns the number of constants that no node uses unquantised.
func (q *weightQuantiser) count() int {
	stay := map[*graph.Value]bool{}
	for _, n := range q.Nodes {
		for _, v := range n.Operands {
			stay[v] = true
		}
	}
	count := 0
	for v := range q.all {
		if !stay[v] {
			count++
		}
	}
	return count
}

// node returns the replacement of a node with integer weights; nil for other nodes.
func (q *weightQuantiser) node(n *graph.Node) []*graph.Node {
	switch _, isProduct := n.Product(); {
	case isProduct && n.Is(op.Conv) && q.multipliesRows(n):
		if w := q.weights(n, weightsUse{n.Operands[1], asTransposed}, true); w != nil {
			return q.pointwise(n, w)
		}
	case isProduct && n.Is(op.Conv):
		if w := q.weights(n, weightsUse{n.Operands[1], asKernels}, !q.as.FloatKernels); w != nil {
			return q.convolution(n, w)
		}
	case isProduct:
		use := weightsUse{Value: n.Operands[1]}
		if n.Is(op.Gemm) && n.Int("transB", 0) != 0 {
			use.form = asTransposed
		}
		if w := q.weights(n, use, isPlainProduct(n)); w != nil {
			return q.product(n, n.Operands[0], w, n.Result.Name)
		}
	case n.Is(op.Gather) && n.Operands[0].Shape.Rank() == 2:
		if w := q.weights(n, weightsUse{n.Operands[0], asTable}, n.Operands[1].Const == nil && n.Int("axis", 0) == 0); w != nil {
			return q.lookup(n, w)
		}
	}
	return nil
}

// isPlainProduct reports whether a node multiplies rows with a matrix, and adds at most a bias.
func isPlainProduct(n *graph.Node) bool {
	x, w := n.Operands[0], n.Operands[1]
	if x.DType != w.DType || x.Shape.Rank() == 0 || w.Shape.Rank() != 2 {
		return false
	}
	return n.Is(op.MatMul) || n.Is(op.Gemm) && n.Int("transA", 0) == 0 && n.Float("alpha", 1) == 1 && n.Float("beta", 1) == 1
}

// multipliesRows reports whether a convolution becomes a product of rows. That holds for 4 bits, and for fast
// numerics that store another type and round data to 8 bits. In floating point it would be slower: the product's
// kernel absorbs no prologue, and Strassen's algorithm is unavailable.
func (q *weightQuantiser) multipliesRows(n *graph.Node) bool {
	return isPointwise(n) && (q.as.WeightBits == 4 || q.as.FloatKernels || q.as.Type != array.Invalid)
}

// isPointwise reports whether a convolution multiplies each position separately with a matrix.
func isPointwise(n *graph.Node) bool {
	p, _ := n.Product()
	x, y := n.Operands[0], n.Result
	strided := slices.ContainsFunc(n.Ints("strides", nil), func(stride int64) bool { return stride != 1 })
	padded := !x.Shape.Slice(2, x.Shape.Rank()).Equal(y.Shape.Slice(2, y.Shape.Rank()))
	return p.Pointwise && !strided && !padded && x.DType == n.Operands[1].DType
}

// weights returns the integer weights of a node, or nil if they stay unchanged, as those not plainly used do.
func (q *weightQuantiser) weights(n *graph.Node, use weightsUse, plainly bool) *quantisedWeights {
	if use.Const == nil || !use.DType.IsFloat() || use.DType == array.Float64 {
		return nil
	}
	q.all[use.Value] = true
	if !plainly || use.Shape.Rank() < 2 || use.Const.Len() < minQuantised {
		return nil
	}
	w, known := q.made[use]
	if !known {
		q.Budget.For(n.Name, n.Op)
		q.Budget.Bytes(2 * use.Const.Len() * array.Float32.Bytes())
		switch use.form {
		case asTable:
			w = q.tableOf(use)
		case asKernels:
			w = q.kernelsOf(use)
		default:
			w = q.matrixOf(use)
		}
		q.made[use] = w
	}
	return w
}

// tableOf returns a table with a scale per row.
func (q *weightQuantiser) tableOf(use weightsUse) *quantisedWeights {
	if use.Shape.Fixed()[1] < minNeighbours {
		return nil
	}
	integers, scales := array.Quantise(use.Const, 1, use.Shape.Fixed()[1], -127, 127)
	if !areFinite(scales) {
		return nil
	}
	return &quantisedWeights{integers: q.Constant(use.Name, integers), scales: q.Constant(use.Name+".scales", scales)}
}

// kernelsOf returns kernels with a scale per output channel. Those of single channels, as in depthwise
// convolutions, are small.
func (q *weightQuantiser) kernelsOf(use weightsUse) *quantisedWeights {
	channels := use.Shape.Fixed()[0]
	terms := use.Const.Len() / channels
	if use.Const.Len() < minKernels || terms < minNeighbours || channels < 2 || use.Shape.Fixed()[1] == 1 {
		return nil
	}
	rows := &array.Array{DType: use.DType, Shape: []int64{channels, terms}, Data: use.Const.Data}
	integers, scales := array.Quantise(rows, 1, terms, -127, 127)
	if !areFinite(scales) {
		return nil
	}
	integers.Shape, scales.Shape = use.Shape.Fixed(), use.Shape.Fixed()[:1]
	return &quantisedWeights{integers: q.Constant(use.Name, integers), scales: q.Constant(use.Name+".scales", scales)}
}

// matrixOf returns codes in the form of op.BlockMatMul: unsigned in 4 bits.
func (q *weightQuantiser) matrixOf(use weightsUse) *quantisedWeights {
	matrix := use.Const
	if len(matrix.Shape) > 2 { // of a 1x1 convolution
		matrix = &array.Array{DType: matrix.DType, Shape: matrix.Shape[:2], Data: matrix.Data}
	}
	if use.form == asTransposed {
		matrix = q.Budget.Arrange(matrix, []int{1, 0})
	}
	depth := matrix.Shape[0]
	block, lo, hi := depth, int64(-127), int64(127)
	if q.as.WeightBits == 4 {
		block, lo, hi = minNeighbours, -8, 7
	}
	if depth < minNeighbours || depth%block != 0 || matrix.Shape[1] < 2 {
		return nil
	}
	codes, scales := array.Quantise(matrix, 0, block, lo, hi)
	if !areFinite(scales) {
		return nil
	}
	if q.as.WeightBits == 4 && isNormal(scales) {
		scales = scales.As(array.Float16)
	}
	w := &quantisedWeights{scales: q.Constant(use.Name+".scales", scales)}
	if q.as.WeightBits == 4 {
		const middle = 8
		for k, code := range codes.Data {
			codes.Data[k] = code + middle
		}
		codes.DType = array.Uint8
		codes = op.PairsOfRows(codes)
		w.zero = q.Constant(use.Name+".zero", array.FromFloat32([]float32{middle}))
	}
	w.integers = q.Constant(use.Name, codes)
	return w
}

func areFinite(a *array.Array) bool {
	for i := range a.Len() {
		if v := a.Float(i); math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// isNormal reports whether all scales are normal in float16, whose precision exceeds that of 4-bit integers.
func isNormal(scales *array.Array) bool {
	const lo, hi = 0x1p-14, 65504
	for i := range scales.Len() {
		if v := math.Abs(scales.Float(i)); v != 0 && (v < lo || v > hi) {
			return false
		}
	}
	return true
}

// product returns the product of x and the integer matrix of a node, plus the node's bias, as a named value.
func (q *weightQuantiser) product(n *graph.Node, x *graph.Value, w *quantisedWeights, name string) []*graph.Node {
	attrs := map[string]*onnx.Attribute{
		"bits":       {Name: "bits", Type: onnx.AttrInt, Int: q.as.WeightBits},
		"block_size": {Name: "block_size", Type: onnx.AttrInt, Int: x.Shape.At(x.Shape.Rank()-1).Max() / w.scales.Shape.Fixed()[0]},
	}
	operands := []*graph.Value{x, w.integers, w.scales}
	if w.zero != nil {
		operands = append(operands, w.zero)
	}
	biased, productName := len(n.Operands) > 2 && n.Operands[2] != nil, name
	if biased {
		productName += ".product"
	}
	made := []*graph.Node{op.Get(q.Apply(op.Node{Name: n.Name, Op: op.BlockMatMul, Opset: 1, Attrs: attrs}, productName, operands...))}
	if biased {
		made = append(made, op.Get(q.Apply(op.Node{Name: n.Name, Op: op.Add, Opset: 14}, name, made[0].Result, n.Operands[2])))
	}
	return made
}

// pointwise returns a 1x1 convolution as a product of rows, which has channels last.
func (q *weightQuantiser) pointwise(n *graph.Node, w *quantisedWeights) []*graph.Node {
	rank := int64(n.Out.Shape.Rank())
	channelsLast, channelsFirst := []int64{0}, []int64{0, rank - 1}
	for k := int64(1); k < rank-1; k++ {
		channelsLast, channelsFirst = append(channelsLast, k+1), append(channelsFirst, k)
	}
	rows := q.transposed(n, n.Operands[0], append(channelsLast, 1), n.Operands[0].Name+".rows")
	product := q.product(n, rows.Result, w, n.Result.Name+".rows")
	result := q.transposed(n, product[len(product)-1].Result, channelsFirst, n.Result.Name)
	return append(append([]*graph.Node{rows}, product...), result)
}

// convolution returns a convolution with integer kernels.
func (q *weightQuantiser) convolution(n *graph.Node, w *quantisedWeights) []*graph.Node {
	var bias *graph.Value
	if len(n.Operands) > 2 {
		bias = n.Operands[2]
	}
	conv := op.Node{Name: n.Name, Op: op.ScaledConv, Opset: n.Opset, Attrs: n.Attrs}
	return []*graph.Node{op.Get(q.Apply(conv, n.Result.Name, n.Operands[0], w.integers, bias, w.scales))}
}

func (q *weightQuantiser) transposed(n *graph.Node, v *graph.Value, perm []int64, name string) *graph.Node {
	attrs := map[string]*onnx.Attribute{"perm": {Name: "perm", Type: onnx.AttrInts, Ints: perm}}
	return op.Get(q.Apply(op.Node{Name: n.Name, Op: op.Transpose, Opset: 13, Attrs: attrs}, name, v))
}

// lookup returns a node that takes rows of an integer table.
func (q *weightQuantiser) lookup(n *graph.Node, w *quantisedWeights) []*graph.Node {
	rows := op.Get(q.Apply(op.Node{Name: n.Name, Op: n.Op, Opset: n.Opset, Attrs: n.Attrs}, n.Result.Name+".integers", w.integers, n.Operands[1]))
	scales := op.Get(q.Apply(op.Node{Name: n.Name, Op: n.Op, Opset: n.Opset, Attrs: n.Attrs}, n.Result.Name+".scales", w.scales, n.Operands[1]))
	to := map[string]*onnx.Attribute{"to": {Name: "to", Type: onnx.AttrInt, Int: int64(onnx.DataType(n.Out.DType))}}
	floats := op.Get(q.Apply(op.Node{Name: n.Name, Op: op.Dequantize, Opset: n.Opset, Attrs: to}, n.Result.Name, rows.Result, scales.Result))
	return []*graph.Node{rows, scales, floats}
}
