package modelzoo

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// quantise rewrites an image network like tools for static quantisation: QuantizeLinear and DequantizeLinear around
// convolutions, dense layers and operators that move or add their results, activations in unsigned bytes with one
// scale each, weights in signed bytes with a scale per output channel. Weights are random, so nothing is
// calibrated: a scale spans a typical range of such values, and varies slightly between activations.
func quantise(m *onnx.Model) {
	q := &quantiser{graph: m.Graph, weights: map[string]*array.Array{}, ranges: map[string]quantised{}, readers: map[string]int{}}
	for _, t := range m.Graph.Initializers {
		q.weights[t.Name] = t.Value
	}
	for _, n := range m.Graph.Nodes {
		for _, v := range n.Inputs {
			q.readers[v]++
		}
	}
	nodes := m.Graph.Nodes
	m.Graph.Nodes = nil
	for _, v := range m.Graph.Inputs {
		if v.DType == array.Float32 {
			q.activation(v.Name, quantised{})
		}
	}
	for k, n := range nodes {
		q.node(n, nodes[k+1:])
	}
	dropUnread(m.Graph)
}

// quantised describes a quantised value, and whether it can be negative.
type quantised struct {
	positive bool
	// name is the dequantised value, scale and zero its parameters.
	name, scale, zero string
}

type quantiser struct {
	graph   *onnx.Graph
	weights map[string]*array.Array
	// ranges holds the quantised activations.
	ranges  map[string]quantised
	readers map[string]int
}

// Operators with quantised results, and those among them that pass on the parameters of their first operand.
var (
	quantisedOperators = []string{
		"Conv", "Gemm", "Relu", "Clip", "Add", "Concat", "MaxPool", "AveragePool", "GlobalAveragePool", "Flatten", "Reshape", "Mul", "Sigmoid", "HardSwish",
	}
	handsOn = []string{"MaxPool", "Flatten", "Reshape"}
)

// node adds a node that reads dequantised values, and the quantisation of its result.
func (q *quantiser) node(n *onnx.Node, rest []*onnx.Node) {
	positive := slices.Contains([]string{"Relu", "Clip", "Sigmoid"}, n.Op)
	for k, v := range n.Inputs {
		if a, ok := q.ranges[v]; ok {
			n.Inputs[k] = a.name
			positive = positive || k == 0 && a.positive && slices.Contains([]string{"Concat", "AveragePool", "GlobalAveragePool"}, n.Op)
		}
	}
	first := ""
	if len(n.Inputs) > 0 {
		first = n.Inputs[0]
	}
	if n.Op == "Conv" || n.Op == "Gemm" {
		q.quantiseWeights(n)
	}
	q.graph.Nodes = append(q.graph.Nodes, n)
	result := n.Outputs[0]
	isOutput := slices.ContainsFunc(q.graph.Outputs, func(v *onnx.ValueInfo) bool { return v.Name == result })
	if isOutput || !slices.Contains(quantisedOperators, n.Op) || q.bounded(n, rest) {
		return
	}
	a := quantised{positive: positive}
	if slices.Contains(handsOn, n.Op) {
		for _, known := range q.ranges {
			if known.name == first {
				a = known
			}
		}
	}
	q.activation(result, a)
}

// bounded reports whether the only reader of a sum is an activation, which is quantised in its place.
func (q *quantiser) bounded(n *onnx.Node, rest []*onnx.Node) bool {
	if n.Op != "Conv" && n.Op != "Gemm" && n.Op != "Add" || q.readers[n.Outputs[0]] != 1 {
		return false
	}
	k := slices.IndexFunc(rest, func(r *onnx.Node) bool { return slices.Contains(r.Inputs, n.Outputs[0]) })
	return k >= 0 && (rest[k].Op == "Relu" || rest[k].Op == "Clip")
}

// activation quantises and dequantises a value, with given parameters or new ones.
func (q *quantiser) activation(v string, a quantised) {
	if a.scale == "" {
		const span = 8
		zero, steps := array.New(array.Uint8), 255.0/span
		if !a.positive {
			zero.SetInt(0, 128)
			steps /= 2
		}
		vary := 0.75 + 0.5*math.Mod(float64(len(q.ranges))*0.618, 1)
		a.scale, a.zero = v+".scale", v+".zero"
		q.constant(a.scale, array.FromFloat32([]float32{float32(vary / steps)}))
		q.constant(a.zero, zero)
	}
	a.name = v + ".dequantised"
	q.graph.Nodes = append(q.graph.Nodes,
		&onnx.Node{Name: v + ".quantise", Op: "QuantizeLinear", Inputs: []string{v, a.scale, a.zero}, Outputs: []string{v + ".quantised"}},
		&onnx.Node{Name: v + ".dequantise", Op: "DequantizeLinear", Inputs: []string{v + ".quantised", a.scale, a.zero}, Outputs: []string{a.name}})
	q.ranges[v] = a
}

func (q *quantiser) constant(name string, a *array.Array) {
	q.graph.Initializers = append(q.graph.Initializers, &onnx.Tensor{Name: name, Value: a})
}

// quantiseWeights replaces the known weights of a node by bytes.
func (q *quantiser) quantiseWeights(n *onnx.Node) {
	w, axis := q.weights[n.Inputs[1]], 0
	if w == nil || w.DType != array.Float32 || len(w.Shape) < 2 {
		return
	}
	if n.Op == "Gemm" && !slices.ContainsFunc(n.Attributes, func(a *onnx.Attribute) bool { return a.Name == "transB" && a.Int == 1 }) {
		axis = 1
	}
	name, channels := n.Inputs[1], w.Shape[axis]
	rows := &array.Array{DType: w.DType, Shape: []int64{w.Shape[0], array.Elements(w.Shape[1:])}, Data: w.Data}
	integers, scale := array.Quantise(rows, 1-axis, rows.Shape[1-axis], -127, 127)
	integers.Shape, scale.Shape = w.Shape, []int64{channels}
	for c := range channels {
		if scale.Float(c) == 0 {
			scale.SetFloat(c, 1e-6/127) // quotients by it stay finite
		}
	}
	zero := array.New(array.Int8, channels)
	q.constant(name+".integers", integers)
	q.constant(name+".scale", scale)
	q.constant(name+".zero", zero)
	n.Inputs[1] = fmt.Sprint(name, ".dequantised")
	q.graph.Nodes = append(q.graph.Nodes, &onnx.Node{
		Name: name + ".dequantise", Op: "DequantizeLinear", Inputs: []string{name + ".integers", name + ".scale", name + ".zero"},
		Outputs: []string{n.Inputs[1]}, Attributes: []*onnx.Attribute{integer("axis", int64(axis))},
	})
}
