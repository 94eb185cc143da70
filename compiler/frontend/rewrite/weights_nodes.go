package rewrite

import (
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// product returns the product of x and the integer matrix of a node, plus the node's bias, as a named value.
func (q *weightQuantiser) product(n *graph.Node, x *graph.Value, w *quantisedWeights, name string) ([]*graph.Node, error) {
	attrs := map[string]*onnx.Attribute{
		"bits":       {Name: "bits", Type: onnx.AttrInt, Int: q.as.WeightBits},
		"block_size": {Name: "block_size", Type: onnx.AttrInt, Int: x.Shape[len(x.Shape)-1] / w.scales.Shape[0]},
	}
	operands := []*graph.Value{x, w.integers, w.scales}
	if w.zero != nil {
		operands = append(operands, w.zero)
	}
	biased, productName := len(n.Operands) > 2 && n.Operands[2] != nil, name
	if biased {
		productName += ".product"
	}
	product, err := q.Apply(op.Node{Name: n.Name, Op: op.BlockMatMul, Opset: 1, Attrs: attrs}, productName, operands...)
	if err != nil || !biased {
		return []*graph.Node{product}, err
	}
	sum, err := q.Apply(op.Node{Name: n.Name, Op: op.Add, Opset: 14}, name, product.Result, n.Operands[2])
	return []*graph.Node{product, sum}, err
}

// pointwise returns a 1x1 convolution as a product of rows, which has channels last.
func (q *weightQuantiser) pointwise(n *graph.Node, w *quantisedWeights) ([]*graph.Node, error) {
	rank := int64(len(n.Out.Shape))
	channelsLast, channelsFirst := []int64{0}, []int64{0, rank - 1}
	for k := int64(1); k < rank-1; k++ {
		channelsLast, channelsFirst = append(channelsLast, k+1), append(channelsFirst, k)
	}
	rows, err := q.transposed(n, n.Operands[0], append(channelsLast, 1), n.Operands[0].Name+".rows")
	if err != nil {
		return nil, err
	}
	product, err := q.product(n, rows.Result, w, n.Result.Name+".rows")
	if err != nil {
		return nil, err
	}
	result, err := q.transposed(n, product[len(product)-1].Result, channelsFirst, n.Result.Name)
	return append(append([]*graph.Node{rows}, product...), result), err
}

// convolution returns a convolution with integer kernels.
func (q *weightQuantiser) convolution(n *graph.Node, w *quantisedWeights) ([]*graph.Node, error) {
	var bias *graph.Value
	if len(n.Operands) > 2 {
		bias = n.Operands[2]
	}
	conv := op.Node{Name: n.Name, Op: op.ScaledConv, Opset: n.Opset, Attrs: n.Attrs}
	made, err := q.Apply(conv, n.Result.Name, n.Operands[0], w.integers, bias, w.scales)
	return []*graph.Node{made}, err
}

func (q *weightQuantiser) transposed(n *graph.Node, v *graph.Value, perm []int64, name string) (*graph.Node, error) {
	attrs := map[string]*onnx.Attribute{"perm": {Name: "perm", Type: onnx.AttrInts, Ints: perm}}
	return q.Apply(op.Node{Name: n.Name, Op: op.Transpose, Opset: 13, Attrs: attrs}, name, v)
}

// lookup returns a node that takes rows of an integer table.
func (q *weightQuantiser) lookup(n *graph.Node, w *quantisedWeights) ([]*graph.Node, error) {
	rows, err := q.Apply(op.Node{Name: n.Name, Op: n.Op, Opset: n.Opset, Attrs: n.Attrs}, n.Result.Name+".integers", w.integers, n.Operands[1])
	if err != nil {
		return nil, err
	}
	scales, err := q.Apply(op.Node{Name: n.Name, Op: n.Op, Opset: n.Opset, Attrs: n.Attrs}, n.Result.Name+".scales", w.scales, n.Operands[1])
	if err != nil {
		return nil, err
	}
	to := map[string]*onnx.Attribute{"to": {Name: "to", Type: onnx.AttrInt, Int: int64(onnx.DataType(n.Out.DType))}}
	floats, err := q.Apply(op.Node{Name: n.Name, Op: op.Dequantize, Opset: n.Opset, Attrs: to}, n.Result.Name, rows.Result, scales.Result)
	return []*graph.Node{rows, scales, floats}, err
}
