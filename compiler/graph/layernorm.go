package graph

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// fuseLayerNorms recognises layer normalisation written out, as exporters before opset 17 do,
//
//	d = x - mean(x);  y = d / sqrt(mean(d*d) + epsilon) * scale + bias
//
// with means over the last axes, and makes it one operator, and so one kernel in place of five.
func fuseLayerNorms(g *graph) error {
	for k, n := range g.nodes {
		m, ok := matchLayerNorm(n)
		if !ok {
			continue
		}
		attrs := map[string]*onnx.Attribute{
			"axis":    {Name: "axis", Type: onnx.AttrInt, Int: int64(m.axis)},
			"epsilon": {Name: "epsilon", Type: onnx.AttrFloat, Float: m.epsilon},
		}
		fused, err := g.apply(op.Node{Name: n.Name, Op: "LayerNormalization", Opset: 17, Attrs: attrs}, n.out.name,
			m.x, m.scale, m.bias)
		if err != nil {
			return err
		}
		g.nodes[k] = fused
		g.replace(n.out, fused.out)
	}
	return nil
}

type layerNorm struct {
	x, scale, bias *value
	axis           int // -1 until the first mean tells
	epsilon        float32
}

// matchLayerNorm starts from the last addition.
func matchLayerNorm(add *node) (m layerNorm, ok bool) {
	m.axis = -1
	scaled := constantOperand(add, "Add", &m.bias)
	normal := constantOperand(producer(scaled), "Mul", &m.scale)
	div := producer(normal)
	if div == nil || div.Op != "Div" {
		return m, false
	}
	centred := div.in[0]
	sub := producer(centred)
	root := producer(div.in[1])
	if sub == nil || sub.Op != "Sub" || root == nil || root.Op != "Sqrt" {
		return m, false
	}
	m.x = sub.in[0]
	var epsilon *value
	variance := producer(constantOperand(producer(root.in[0]), "Add", &epsilon))
	if !m.isMean(producer(sub.in[1]), m.x) || variance == nil || len(variance.in) == 0 ||
		!m.isMean(variance, variance.in[0]) || !isSquare(producer(variance.in[0]), centred) || epsilon.data.Len() != 1 {
		return m, false
	}
	m.epsilon = float32(epsilon.data.Float(0))
	return m, fitsAxes(m.scale, m.x.Shape[m.axis:]) && fitsAxes(m.bias, m.x.Shape[m.axis:])
}

func producer(v *value) *node {
	if v == nil {
		return nil
	}
	return v.producer
}

// constantOperand splits a commutative operator of a constant and another operand; nil when n is none.
func constantOperand(n *node, name string, constant **value) *value {
	if n == nil || n.Op != name || len(n.in) != 2 {
		return nil
	}
	for k, v := range n.in {
		if v.data != nil {
			*constant = v
			return n.in[1-k]
		}
	}
	return nil
}

// isMean reports whether n is the mean of x over the last axes, keeping them; the first mean decides the axes.
func (m *layerNorm) isMean(n *node, x *value) bool {
	if n == nil || n.Op != "ReduceMean" || n.in[0] != x || len(n.Out.Shape) != len(x.Shape) {
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
	if n.Op == "Pow" {
		e := n.in[1].data
		return e != nil && e.Len() == 1 && e.Float(0) == 2
	}
	return n.Op == "Mul" && n.in[1] == v
}

// fitsAxes reports whether a parameter has the shape of the normalised axes.
func fitsAxes(v *value, shape []int64) bool { return v.data != nil && slices.Equal(v.Shape, shape) }
