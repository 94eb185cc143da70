package graph

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// builder reads an ONNX graph into a graph, folding what is constant.
type builder struct {
	*graph
	opset  int64
	values map[string]*value
	used   map[string]bool
}

func build(m *onnx.Model, opts Options) (*graph, error) {
	b := &builder{graph: &graph{name: m.Graph.Name}, opset: m.Opset(""), values: map[string]*value{}, used: usedNames(m.Graph)}
	for _, t := range m.Graph.Initializers {
		b.values[t.Name] = b.constant(t.Name, t.Value)
	}
	if err := b.addInputs(m.Graph.Inputs, opts.Shapes); err != nil {
		return nil, err
	}
	for k, n := range m.Graph.Nodes {
		if err := b.addNode(k, n); err != nil {
			return nil, err
		}
	}
	for _, o := range m.Graph.Outputs {
		v := b.values[o.Name]
		if v == nil {
			return nil, fmt.Errorf("output %q is computed by no node", o.Name)
		}
		b.outputs = append(b.outputs, v)
	}
	if len(b.outputs) == 0 {
		return nil, fmt.Errorf("model %q has no outputs", b.name)
	}
	return b.graph, b.nameOutputs(m.Graph.Outputs)
}

func usedNames(g *onnx.Graph) map[string]bool {
	used := map[string]bool{}
	for _, n := range g.Nodes {
		for _, name := range n.Inputs {
			used[name] = true
		}
	}
	for _, o := range g.Outputs {
		used[o.Name] = true
	}
	return used
}

func (b *builder) addInputs(infos []*onnx.ValueInfo, shapes map[string][]int64) error {
	unknown := map[string]bool{}
	for name := range shapes {
		unknown[name] = true
	}
	for _, info := range infos {
		if b.values[info.Name] != nil {
			continue // an initializer
		}
		shape, err := inputShape(info, shapes)
		if err != nil {
			return err
		}
		delete(unknown, info.Name)
		v := b.newValue(info.Name, op.Type{DType: info.DType, Shape: shape})
		b.values[info.Name] = v
		b.inputs = append(b.inputs, v)
	}
	for name := range unknown {
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
		case !ok && d.Value <= 0:
			return nil, fmt.Errorf("input %q has the open extent %q at axis %d: give its shape as %s=1x3x224x224",
				info.Name, d.Param, k, info.Name)
		case !ok:
			shape = append(shape, d.Value)
		case d.Value > 0 && d.Value != given[k]:
			return nil, fmt.Errorf("input %q has extent %d at axis %d and cannot take shape %v", info.Name, d.Value, k, given)
		}
	}
	if _, err := array.CheckedBytes(info.DType, shape); err != nil || array.Elements(shape) == 0 {
		return nil, fmt.Errorf("input %q cannot have shape %v", info.Name, shape)
	}
	return shape, nil
}

func (b *builder) addNode(index int, n *onnx.Node) error {
	name := n.Name
	if name == "" {
		name = fmt.Sprintf("%s_%d", n.Op, index)
	}
	if n.Domain != "" && n.Domain != "ai.onnx" {
		return fmt.Errorf("node %q (%s): operators of domain %q are not supported", name, n.Op, n.Domain)
	}
	attrs := map[string]*onnx.Attribute{}
	for _, a := range n.Attributes {
		attrs[a.Name] = a
	}
	in := make([]*value, 0, len(n.Inputs))
	for _, input := range n.Inputs {
		v := b.values[input]
		if input != "" && v == nil {
			return fmt.Errorf("node %q (%s): input %q is computed by no earlier node", name, n.Op, input)
		}
		in = append(in, v)
	}
	for len(in) > 0 && in[len(in)-1] == nil {
		in = in[:len(in)-1]
	}
	for k, output := range n.Outputs {
		if output == "" || !b.used[output] {
			continue
		}
		v := op.Node{Name: name, Op: n.Op, Opset: b.opset, Attrs: attrs, Output: k, Outputs: len(n.Outputs)}
		if err := b.addResult(v, output, in); err != nil {
			return err
		}
	}
	return nil
}

// addResult adds one result of a node, as a constant where possible.
func (b *builder) addResult(n op.Node, output string, in []*value) error {
	if b.values[output] != nil {
		return fmt.Errorf("node %q (%s): value %q is computed twice", n.Name, n.Op, output)
	}
	made, err := b.apply(n, output, slices.Clone(in)...)
	if err != nil {
		return err
	}
	switch {
	case made.Def().Kind == op.Identity:
		b.values[output] = in[0]
	case made.Def().Kind == op.Known || allKnown(in):
		a, err := op.Evaluate(made.Node)
		if err != nil {
			return fmt.Errorf("node %q (%s, opset %d): %w", n.Name, n.Op, n.Opset, err)
		}
		b.values[output] = b.constant(output, a)
	case array.Elements(made.Out.Shape) == 0:
		return fmt.Errorf("node %q (%s, opset %d): result %q of shape %v has no elements", n.Name, n.Op, n.Opset, output, made.Out.Shape)
	default:
		b.values[output] = made.out
		b.nodes = append(b.nodes, made)
	}
	return nil
}

func allKnown(in []*value) bool {
	for _, v := range in {
		if v != nil && v.data == nil {
			return false
		}
	}
	return true
}

// nameOutputs gives each output a value of its own with the output's name: a copy where the value is an input, a constant
// or another output as well.
func (b *builder) nameOutputs(infos []*onnx.ValueInfo) error {
	b.number()
	for k, v := range b.outputs {
		if array.Elements(v.Shape) == 0 {
			return fmt.Errorf("output %q of shape %v has no elements", infos[k].Name, v.Shape)
		}
		if v.producer == nil || slices.Contains(b.outputs[:k], v) {
			n, err := b.apply(op.Node{Name: infos[k].Name, Op: op.CopyName, Opset: b.opset}, infos[k].Name, v)
			if err != nil {
				return err
			}
			b.nodes = append(b.nodes, n)
			b.outputs[k] = n.out
			continue
		}
		v.name = infos[k].Name
	}
	return nil
}
