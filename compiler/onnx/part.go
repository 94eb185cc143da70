package onnx

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Part returns the part of a model that computes the values `to` from the values `from`, which become its inputs,
// and from other inputs of the model as needed. Without `to`, it computes the model's outputs. The model must
// declare the type and shape of each value in `from`. The part shares the model's memory and has its digest.
func (m *Model) Part(from, to []string) (*Model, error) {
	g := m.Graph
	described, err := g.described()
	if err != nil {
		return nil, err
	}
	part := &Graph{Name: g.Name}
	for _, name := range from {
		v, err := described.input(name)
		if err != nil {
			return nil, err
		}
		part.Inputs = append(part.Inputs, v)
	}
	if len(to) == 0 {
		part.Outputs = g.Outputs
	}
	for _, name := range to {
		v := cmp.Or(described[name], &ValueInfo{Name: name})
		part.Outputs = append(part.Outputs, v)
	}

	needed := g.needed(part)
	for _, name := range from {
		if !needed[name] {
			return nil, fmt.Errorf("the part does not need its input %q", name)
		}
	}
	cut := names(part.Inputs)
	part.Initializers = slices.DeleteFunc(slices.Clone(g.Initializers), func(t *Tensor) bool { return !needed[t.Name] || cut[t.Name] })
	constant := map[string]bool{}
	for _, t := range part.Initializers {
		constant[t.Name] = true
	}
	for _, v := range g.Inputs {
		if needed[v.Name] && !cut[v.Name] && !constant[v.Name] {
			part.Inputs = append(part.Inputs, v)
		}
	}
	for _, n := range g.Nodes {
		if n.needed(needed, cut) {
			part.Nodes = append(part.Nodes, n)
		}
	}
	if err := part.computes(); err != nil {
		return nil, err
	}
	if len(part.Nodes) == 0 {
		return nil, fmt.Errorf("the part from %q to %q has no nodes", from, to)
	}
	whole := *m
	whole.Graph = part
	return &whole, nil
}

// descriptions holds the ValueInfos of a graph by name.
type descriptions map[string]*ValueInfo

func (g *Graph) described() (descriptions, error) {
	all := descriptions{}
	for _, data := range g.values {
		v, err := readValueInfo(data)
		if err != nil {
			return nil, err
		}
		all[v.Name] = v
	}
	for _, v := range slices.Concat(g.Inputs, g.Outputs) {
		all[v.Name] = v
	}
	return all, nil
}

// input returns the description of a new input.
func (d descriptions) input(name string) (*ValueInfo, error) {
	switch v := d[name]; {
	case v == nil, v.Kind == "" && (v.DType == array.Invalid || !v.HasShape):
		return nil, fmt.Errorf("the model does not say the type and shape of %q, which is to be an input of the part: add them with onnx.shape_inference.infer_shapes", name)
	case v.Kind != "":
		return nil, fmt.Errorf("%q, which is to be an input of the part, is not a tensor but a %s", name, v.Kind)
	default:
		return v, nil
	}
}

func names(values []*ValueInfo) map[string]bool {
	set := map[string]bool{}
	for _, v := range values {
		set[v.Name] = true
	}
	return set
}

// needed returns the values that a part's outputs depend on, up to its inputs.
func (g *Graph) needed(part *Graph) map[string]bool {
	producers := map[string]*Node{}
	for _, n := range g.Nodes {
		for _, name := range n.Outputs {
			producers[name] = n
		}
	}
	needed, cut := map[string]bool{}, names(part.Inputs)
	open := slices.Collect(maps.Keys(names(part.Outputs)))
	for len(open) > 0 {
		name := open[len(open)-1]
		open = open[:len(open)-1]
		if name == "" || needed[name] {
			continue
		}
		needed[name] = true
		if n := producers[name]; n != nil && !cut[name] {
			open = n.reads(open)
		}
	}
	return needed
}

// needed reports whether a node computes a value that is needed and not cut off.
func (n *Node) needed(needed, cut map[string]bool) bool {
	return slices.ContainsFunc(n.Outputs, func(name string) bool { return name != "" && needed[name] && !cut[name] })
}

// computes returns an error if a graph does not compute one of its outputs.
func (g *Graph) computes() error {
	known := names(g.Inputs)
	for _, t := range g.Initializers {
		known[t.Name] = true
	}
	for _, n := range g.Nodes {
		for _, name := range n.Outputs {
			known[name] = true
		}
	}
	for _, v := range g.Outputs {
		if !known[v.Name] {
			return fmt.Errorf("the model computes no value %q", v.Name)
		}
	}
	return nil
}
