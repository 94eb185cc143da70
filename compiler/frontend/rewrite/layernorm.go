package rewrite

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// fuseLayerNorms recognises decomposed layer normalisation, as written by exporters before opset 17,
//
//	d = x - mean(x);  y = d / sqrt(mean(d*d) + epsilon) [* scale [+ bias]]
//
// and root-mean-square normalisation, where d is x, with means over the last axes. The quotient may be a product
// with a reciprocal. The result is one operator, and thus one kernel in place of five.
func fuseLayerNorms(g *graph.Graph) {
	for k := len(g.Nodes) - 1; k >= 0; k-- { // backward: the last node of a pattern comes before its parts
		n := g.Nodes[k]
		if m, ok := matchNorm(n); ok {
			g.Splice(k, normOf(g, n, m))
		}
	}
}

// normOf returns the operator of a normalisation.
func normOf(g *graph.Graph, n *graph.Node, m layerNorm) *graph.Node {
	attrs := map[string]*onnx.Attribute{
		"axis":    {Name: "axis", Type: onnx.AttrInt, Int: int64(m.axis)},
		"epsilon": {Name: "epsilon", Type: onnx.AttrFloat, Float: m.epsilon},
	}
	operands := []*graph.Value{m.x, m.scale}
	if m.scale == nil {
		operands[1] = g.Constant(n.Name+".one", array.Scalar(m.x.DType, 1))
	}
	if m.bias != nil {
		operands = append(operands, m.bias)
	}
	node := op.Node{Name: n.Name, Op: op.LayerNormalization, Opset: 17, Attrs: attrs}
	if !m.centred {
		node.Op, node.Opset = op.RMSNormalization, 23
	}
	return op.Get(g.Apply(node, n.Result.Name, operands...))
}

// layerNorm is a matched normalisation; scale and bias may be nil.
type layerNorm struct {
	x, scale, bias *graph.Value
	centred        bool
	axis           int // -1 until the first mean determines it
	epsilon        float32
}

// matchNorm starts from the last addition, multiplication or division.
func matchNorm(last *graph.Node) (m layerNorm, ok bool) {
	m.axis = -1
	normal := last
	if scaled := constantOperand(last, op.Add, &m.bias); scaled != nil {
		normal = producer(scaled)
	}
	if x := constantOperand(normal, op.Mul, &m.scale); x != nil {
		normal = producer(x)
	}
	d, variance := quotient(normal)
	if d == nil || m.bias != nil && (m.scale == nil || !m.isCentred(producer(d))) {
		return m, false
	}
	var epsilon *graph.Value
	mean := producer(constantOperand(producer(variance), op.Add, &epsilon))
	if mean == nil || len(mean.Operands) == 0 || epsilon.Const.Len() != 1 || !isSquare(producer(mean.Operands[0]), d) || !m.isMean(mean, mean.Operands[0]) {
		return m, false
	}
	m.epsilon = float32(epsilon.Const.Float(0))
	if m.x = d; m.isCentred(producer(d)) {
		m.x, m.centred = d.Producer.Operands[0], true
	}
	return m, m.fits(m.scale) && m.fits(m.bias)
}

// fits reports whether a parameter is omitted or has the shape of the normalised axes.
func (m *layerNorm) fits(v *graph.Value) bool {
	return v == nil || v.Const != nil && v.Shape.Equal(m.x.Shape.Slice(m.axis, m.x.Shape.Rank()))
}

// isCentred reports whether n subtracts its operand's mean from it.
func (m *layerNorm) isCentred(n *graph.Node) bool {
	return n.Is(op.Sub) && m.isMean(producer(n.Operands[1]), n.Operands[0])
}

// quotient matches d divided by the root of a value: as a division, or a product with the reciprocal of the root;
// nils if n is neither.
func quotient(n *graph.Node) (d, squared *graph.Value) {
	if n == nil || len(n.Operands) != 2 {
		return nil, nil
	}
	if root := producer(n.Operands[1]); n.Is(op.Div) && root.Is(op.Sqrt) {
		return n.Operands[0], root.Operands[0]
	}
	for k := range n.Operands {
		r := producer(n.Operands[k])
		if !n.Is(op.Mul) || r == nil || len(r.Operands) == 0 {
			continue
		}
		inverted := r.Operands[0]
		if r.Is(op.Div) && isScalar(inverted) && inverted.Const.Float(0) == 1 {
			inverted = r.Operands[1]
		} else if !r.Is(op.Reciprocal) {
			continue
		}
		if root := producer(inverted); root.Is(op.Sqrt) {
			return n.Operands[1-k], root.Operands[0]
		}
	}
	return nil, nil
}

// isMean reports whether n is the mean of x over the last axes, keeping them; the first mean determines the axes.
func (m *layerNorm) isMean(n *graph.Node, x *graph.Value) bool {
	if !n.Is(op.ReduceMean) || n.Operands[0] != x || n.Out.Shape.Rank() != x.Shape.Rank() {
		return false
	}
	axis := x.Shape.Rank()
	for axis > 0 && n.Out.Shape.At(axis-1).Is(1) && !x.Shape.At(axis-1).Is(1) {
		axis--
	}
	if axis == x.Shape.Rank() || !n.Out.Shape.Slice(0, axis).Equal(x.Shape.Slice(0, axis)) || m.axis >= 0 && m.axis != axis {
		return false
	}
	m.axis = axis
	return true
}

// isSquare reports whether n is v*v or v to the power of two.
func isSquare(n *graph.Node, v *graph.Value) bool {
	if n == nil || len(n.Operands) == 0 || n.Operands[0] != v {
		return false
	}
	if n.Is(op.Pow) {
		e := n.Operands[1].Const
		return e != nil && e.Len() == 1 && e.Float(0) == 2
	}
	return n.Is(op.Mul) && n.Operands[1] == v
}
