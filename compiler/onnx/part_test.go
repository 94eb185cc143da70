package onnx

import (
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

// chain returns x -> a -> b -> y, where b also needs w and the input m; it declares the type of a.
func chain() *Model {
	float := func(name string) *ValueInfo {
		return &ValueInfo{Name: name, DType: array.Float32, HasShape: true, Shape: []Dim{{Value: 2}, {Value: 2}}}
	}
	return &Model{Digest: "d", Opsets: []Opset{{Version: 17}}, Graph: &Graph{
		Name: "chain",
		Nodes: []*Node{
			{Name: "1", Op: "Relu", Inputs: []string{"x"}, Outputs: []string{"a"}},
			{Name: "2", Op: "If", Inputs: []string{"m"}, Outputs: []string{"b"}, Attributes: []*Attribute{
				{Name: "then_branch", Type: AttrGraph, Graph: &Graph{Nodes: []*Node{{Op: "Add", Inputs: []string{"a", "w"}, Outputs: []string{"s"}}}, Outputs: []*ValueInfo{float("s")}}},
				{Name: "else_branch", Type: AttrGraph, Graph: &Graph{Outputs: []*ValueInfo{float("a")}}},
			}},
			{Name: "3", Op: "Relu", Inputs: []string{"b"}, Outputs: []string{"y"}},
		},
		Initializers: []*Tensor{{Name: "w", Value: array.FromFloat32([]float32{1, 2, 3, 4}, 2, 2)}},
		Inputs:       []*ValueInfo{float("x"), {Name: "m", DType: array.Bool, HasShape: true}},
		Outputs:      []*ValueInfo{float("y")},
		values:       [][]byte{float("a").encode().encoded()},
	}}
}

func TestPartHasWhatItsOutputsNeed(t *testing.T) {
	for _, c := range []struct {
		from, to                             []string
		nodes, inputs, outputs, initializers string
	}{
		{nil, nil, "1 2 3", "x m", "y", "w"},
		{nil, []string{"a"}, "1", "x", "a", ""},
		{[]string{"a"}, nil, "2 3", "a m", "y", "w"},
		{[]string{"a"}, []string{"b"}, "2", "a m", "b", "w"},
		{nil, []string{"b", "a"}, "1 2", "x m", "b a", "w"},
	} {
		m, err := chain().Part(c.from, c.to)
		if err != nil {
			t.Errorf("from %q to %q: %v", c.from, c.to, err)
			continue
		}
		named := func(list []*ValueInfo) (names []string) {
			for _, v := range list {
				names = append(names, v.Name)
			}
			return names
		}
		var nodes, initializers []string
		for _, n := range m.Graph.Nodes {
			nodes = append(nodes, n.Name)
		}
		for _, i := range m.Graph.Initializers {
			initializers = append(initializers, i.Name)
		}
		got := []string{strings.Join(nodes, " "), strings.Join(named(m.Graph.Inputs), " "), strings.Join(named(m.Graph.Outputs), " "), strings.Join(initializers, " ")}
		if want := []string{c.nodes, c.inputs, c.outputs, c.initializers}; !slices.Equal(got, want) || m.Digest != "d" {
			t.Errorf("from %q to %q: nodes, inputs, outputs and initializers are %q, want %q", c.from, c.to, got, want)
		}
	}
}

func TestInvalidPartsAreRefused(t *testing.T) {
	for _, c := range []struct {
		from, to []string
		want     string
	}{
		{[]string{"b"}, nil, `does not say the type and shape of "b"`},
		{[]string{"nothing"}, nil, `does not say the type and shape of "nothing"`},
		{nil, []string{"nothing"}, `computes no value "nothing"`},
		{[]string{"a"}, []string{"a"}, "has no nodes"},
		{[]string{"y"}, []string{"a"}, `does not need its input "y"`},
	} {
		m, err := chain().Part(c.from, c.to)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("from %q to %q: %v, %v, want an error with %q", c.from, c.to, m, err, c.want)
		}
	}
}
