package graph

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// fuseLayerNorms recognises layer normalisation written out, as exporters before opset 17 do,
//
//	d = x - mean(x);  y = d / sqrt(mean(d*d) + epsilon) [* scale [+ bias]]
//
// and normalisation by the root mean square, where d is x, with means over the last axes. The quotient may be a
// product with a reciprocal. It becomes one operator, and so one kernel in place of five.
func fuseLayerNorms(g *graph) error {
	for k := len(g.nodes) - 1; k >= 0; k-- { // the last node of a pattern comes before its parts
		n := g.nodes[k]
		m, ok := matchNorm(n)
		if !ok {
			continue
		}
		fused, err := normOf(g, n, m)
		if err != nil {
			return err
		}
		g.nodes[k] = fused
		g.replace(n.out, fused.out)
	}
	return nil
}

// normOf is the operator of a norm.
func normOf(g *graph, n *node, m layerNorm) (*node, error) {
	attrs := map[string]*onnx.Attribute{
		"axis":    {Name: "axis", Type: onnx.AttrInt, Int: int64(m.axis)},
		"epsilon": {Name: "epsilon", Type: onnx.AttrFloat, Float: m.epsilon},
	}
	operands := []*value{m.x, m.scale}
	if m.scale == nil {
		one := array.New(m.x.DType)
		one.SetFloat(0, 1)
		operands[1] = g.constant(n.Name+".one", one)
	}
	if m.bias != nil {
		operands = append(operands, m.bias)
	}
	node := op.Node{Name: n.Name, Op: op.LayerNormalization, Opset: 17, Attrs: attrs}
	if !m.centred {
		node.Op, node.Opset = op.RMSNormalization, 23
	}
	return g.apply(node, n.out.name, operands...)
}

// layerNorm is what was found of a norm; scale and bias may be nil.
type layerNorm struct {
	x, scale, bias *value
	centred        bool
	axis           int // -1 until the first mean tells
	epsilon        float32
}

// matchNorm starts from the last addition, multiplication or division.
func matchNorm(last *node) (m layerNorm, ok bool) {
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
	var epsilon *value
	mean := producer(constantOperand(producer(variance), op.Add, &epsilon))
	if mean == nil || len(mean.in) == 0 || epsilon.Const.Len() != 1 || !isSquare(producer(mean.in[0]), d) || !m.isMean(mean, mean.in[0]) {
		return m, false
	}
	m.epsilon = float32(epsilon.Const.Float(0))
	if m.x = d; m.isCentred(producer(d)) {
		m.x, m.centred = d.producer.in[0], true
	}
	return m, m.fits(m.scale) && m.fits(m.bias)
}

// fits reports whether a parameter is left out or has the shape of the normalised axes.
func (m *layerNorm) fits(v *value) bool { return v == nil || fitsAxes(v, m.x.Shape[m.axis:]) }

// isCentred reports whether n subtracts its operand's mean from it.
func (m *layerNorm) isCentred(n *node) bool {
	return n.is(op.Sub) && m.isMean(producer(n.in[1]), n.in[0])
}

// quotient takes d divided by the root of a value apart: as a division, or a product with the reciprocal of the root;
// nils when n is neither.
func quotient(n *node) (d, squared *value) {
	if n == nil || len(n.in) != 2 {
		return nil, nil
	}
	if root := producer(n.in[1]); n.is(op.Div) && root.is(op.Sqrt) {
		return n.in[0], root.in[0]
	}
	for k := range n.in {
		r := producer(n.in[k])
		if !n.is(op.Mul) || r == nil {
			continue
		}
		inverted := r.in[0]
		if r.is(op.Div) && isOne(r.in[0]) {
			inverted = r.in[1]
		} else if !r.is(op.Reciprocal) {
			continue
		}
		if root := producer(inverted); root.is(op.Sqrt) {
			return n.in[1-k], root.in[0]
		}
	}
	return nil, nil
}

func isOne(v *value) bool { return isScalar(v) && v.Const.Float(0) == 1 }

// isMean reports whether n is the mean of x over the last axes, keeping them; the first mean decides the axes.
func (m *layerNorm) isMean(n *node, x *value) bool {
	if !n.is(op.ReduceMean) || n.in[0] != x || len(n.Out.Shape) != len(x.Shape) {
		return false
	}
	axis := len(x.Shape)
	for axis > 0 && n.Out.Shape[axis-1] == 1 && x.Shape[axis-1] != 1 {
		axis--
	}
	if axis == len(x.Shape) || !slices.Equal(n.Out.Shape[:axis], x.Shape[:axis]) || m.axis >= 0 && m.axis != axis {
		return false
	}
	m.axis = axis
	return true
}

// isSquare reports whether n is v*v or v to the power of two.
func isSquare(n *node, v *value) bool {
	if n == nil || n.in[0] != v {
		return false
	}
	if n.is(op.Pow) {
		e := n.in[1].Const
		return e != nil && e.Len() == 1 && e.Float(0) == 2
	}
	return n.is(op.Mul) && n.in[1] == v
}

// fitsAxes reports whether a parameter has the shape of the normalised axes.
func fitsAxes(v *value, shape []int64) bool { return v.Const != nil && slices.Equal(v.Shape, shape) }
