package graph

import (
	"fmt"
	"maps"
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
	// budget is how many more nodes may be made, so that a small file cannot ask for endless loops.
	budget int
}

// maxNodes bounds the nodes of a model with its loops unrolled and its functions inlined.
const maxNodes = 1 << 18

func build(m *onnx.Model, opts Options) (*graph, error) {
	b := &builder{
		graph: &graph{name: m.Graph.Name}, functions: functionsOf(m), expanders: expanderTable(),
		training: trainingExpanders(), budget: maxNodes,
	}
	var outputs []string
	for _, o := range m.Graph.Outputs {
		outputs = append(outputs, o.Name)
	}
	s := newScope(&frame{opsets: m.Opsets}, nil, m.Graph.Nodes, outputs)
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

func (b *builder) addInputs(s *scope, infos []*onnx.ValueInfo, shapes map[string][]int64) error {
	unknown := map[string]bool{}
	for name := range shapes {
		unknown[name] = true
	}
	for _, info := range infos {
		if s.items[info.Name] != nil {
			continue // an initializer
		}
		shape, err := inputShape(info, shapes)
		if err != nil {
			return err
		}
		delete(unknown, info.Name)
		v := b.newValue(info.Name, op.Type{DType: info.DType, Shape: shape})
		if isEmpty(shape) {
			v.data = array.New(info.DType, shape...)
		}
		s.items[info.Name] = &item{tensor: v}
		b.inputs = append(b.inputs, v)
	}
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		return fmt.Errorf("there is no input %q to give a shape: the model's inputs are %s", name, valueNames(b.inputs))
	}
	return nil
}

func valueNames(values []*value) string {
	names := make([]string, len(values))
	for k, v := range values {
		names[k] = v.name
	}
	return fmt.Sprintf("%q", names)
}

func inputShape(info *onnx.ValueInfo, shapes map[string][]int64) ([]int64, error) {
	if info.Kind != "" {
		return nil, fmt.Errorf("input %q is a %s: only tensors are supported", info.Name, info.Kind)
	}
	if info.DType == array.Invalid {
		return nil, fmt.Errorf("input %q has an element type that is not supported", info.Name)
	}
	given, ok := shapes[info.Name]
	if !ok && !info.HasShape {
		return nil, fmt.Errorf("input %q has no shape: give it as %s=1x3x224x224", info.Name, info.Name)
	}
	if ok && info.HasShape && len(given) != len(info.Shape) {
		return nil, fmt.Errorf("input %q has rank %d and cannot take shape %v", info.Name, len(info.Shape), given)
	}
	shape := slices.Clone(given)
	for k, d := range info.Shape {
		switch {
		case !ok && d.Value < 0:
			return nil, fmt.Errorf("input %q has the open extent %q at axis %d: give its shape as %s=1x3x224x224",
				info.Name, d.Param, k, info.Name)
		case !ok:
			shape = append(shape, d.Value)
		case d.Value > 0 && d.Value != given[k]:
			return nil, fmt.Errorf("input %q has extent %d at axis %d and cannot take shape %v", info.Name, d.Value, k, given)
		}
	}
	if _, err := array.CheckedBytes(info.DType, shape); err != nil {
		return nil, fmt.Errorf("input %q cannot have shape %v", info.Name, shape)
	}
	return shape, nil
}

// addOutputs finds the graph's outputs and gives each a value of its own with the output's name: a copy where the value is
// an input, a constant or another output as well.
func (b *builder) addOutputs(s *scope, names []string) error {
	b.number()
	for _, name := range names {
		it := s.items[name]
		switch {
		case it == nil:
			return fmt.Errorf("output %q is computed by no node", name)
		case it.tensor == nil:
			return fmt.Errorf("output %q is no tensor: make it one by ConcatFromSequence, SequenceAt or OptionalGetElement", name)
		}
		v := it.tensor
		switch {
		case isEmpty(v.Shape):
			v = b.constant(name, v.data)
		case v.producer == nil || slices.Contains(b.outputs, v):
			n, err := b.apply(op.Node{Name: name, Op: op.CopyName}, name, v)
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
