package graph

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// builder reads an ONNX graph into a graph, folding what is constant and writing composite operators as simpler ones.
type builder struct {
	*graph
	functions map[functionName]*onnx.Function
	expanders map[string]expander
	training  map[string]expander
	// dequantised has what the results of DequantizeLinear were made of.
	dequantised map[*value]dequantised
	// used are the names that the nodes of a graph or function read, by its address.
	used map[any]map[string]bool
}

func build(m *onnx.Model, opts Options, budget *op.Budget) (*graph, error) {
	b := &builder{
		graph: &graph{name: m.Graph.Name, budget: budget}, functions: functionsOf(m), expanders: expanderTable(),
		training: trainingExpanders(), dequantised: map[*value]dequantised{}, used: map[any]map[string]bool{},
	}
	var outputs []string
	for _, o := range m.Graph.Outputs {
		outputs = append(outputs, o.Name)
	}
	s := newScope(&frame{opsets: m.Opsets}, nil, b.usedBy(m.Graph, m.Graph.Nodes, outputs))
	for _, t := range m.Graph.Initializers {
		s.items[t.Name] = &item{tensor: b.constant(t.Name, t.Value)}
	}
	if err := b.addInputs(s, m.Graph.Inputs, opts.Shapes); err != nil {
		return nil, err
	}
	if err := b.addNodes(s, m.Graph.Nodes); err != nil {
		return nil, err
	}
	if len(outputs) == 0 {
		return nil, fmt.Errorf("model %q has no outputs", b.name)
	}
	return b.graph, b.addOutputs(s, outputs)
}

// addInputs adds the inputs that are no initializers.
func (b *builder) addInputs(s *scope, infos []*onnx.ValueInfo, given map[string][]int64) error {
	infos = slices.DeleteFunc(slices.Clone(infos), func(info *onnx.ValueInfo) bool { return s.items[info.Name] != nil })
	shapes, err := resolveShapes(infos, given)
	if err != nil {
		return err
	}
	for k, info := range infos {
		v := b.newValue(info.Name, op.Type{DType: info.DType, Shape: shapes[k]})
		if isEmpty(shapes[k]) {
			v.data = array.New(info.DType, shapes[k]...)
		}
		s.items[info.Name] = &item{tensor: v}
		b.inputs = append(b.inputs, v)
	}
	return nil
}

// addOutputs finds the graph's outputs and gives each a value of its own with the output's name: a copy where the
// value is an input, a constant or another output as well.
func (b *builder) addOutputs(s *scope, names []string) error {
	b.number()
	for _, name := range names {
		it := s.items[name]
		switch {
		case it == nil:
			return fmt.Errorf("output %q is computed by no node", name)
		case it.tensor == nil:
			return fmt.Errorf("output %q is not a tensor: make it one by ConcatFromSequence, SequenceAt or OptionalGetElement", name)
		}
		v := it.tensor
		switch {
		case isEmpty(v.Shape):
			v = b.constant(name, v.data)
		case v.producer == nil || slices.Contains(b.outputs, v):
			n, err := b.apply(op.Node{Name: name, Op: op.Copy}, name, v)
			if err != nil {
				return err
			}
			b.nodes = append(b.nodes, n)
			v = n.out
		default:
			v.name = name
		}
		b.outputs = append(b.outputs, v)
	}
	return nil
}
