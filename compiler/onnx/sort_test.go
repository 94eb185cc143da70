package onnx

import (
	"slices"
	"strings"
	"testing"
)

// TestNodesAreReadInAnOrderInWhichTheyRun includes reads by graphs in attributes, whose own names may occur outside.
func TestNodesAreReadInAnOrderInWhichTheyRun(t *testing.T) {
	same := chain()
	same.Graph.Nodes[2].Outputs = []string{"s"} // also a name in then_branch
	same.Graph.Outputs[0].Name = "s"
	cycle := chain()
	cycle.Graph.Nodes[0].Inputs = []string{"y"}
	for name, c := range map[string]struct {
		m     *Model
		order []int
		want  string
	}{
		"in order":                {chain(), []int{0, 1, 2}, "1 2 3"},
		"backwards":               {chain(), []int{2, 1, 0}, "1 2 3"},
		"rotated":                 {chain(), []int{1, 2, 0}, "1 2 3"},
		"a name of a branch":      {same, []int{0, 1, 2}, "1 2 3"},
		"a cycle, in their order": {cycle, []int{2, 0, 1}, "3 1 2"},
	} {
		var nodes []*Node
		for _, k := range c.order {
			nodes = append(nodes, c.m.Graph.Nodes[k])
		}
		c.m.Graph.Nodes = nodes
		read, err := Read(c.m.encode().encoded())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, n := range read.Graph.Nodes {
			got = append(got, n.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
	if names := chain().Graph.Nodes[1].reads(nil); slices.Contains(names, "s") {
		t.Errorf("the node reads %v, which has a name of its branch", names)
	}
}
