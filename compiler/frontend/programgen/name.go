package programgen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// taskName returns a name such as "conv2d+add+relu 1x56x56x64 k3x3 -> 64": operators, operand in memory, details,
// output channels.
func taskName(kernel *graph.Kernel) string {
	var labels []string
	for _, n := range kernel.Nodes {
		labels = append(labels, label(n))
	}
	n := kernel.Anchor
	parts := []string{strings.Join(labels, "+")}
	if v := firstInput(n); v != nil {
		parts = append(parts, dims(op.Physical(v.Shape.Max(), v.Layout)))
	}
	if detail := n.Def().Detail; detail != nil {
		if text := detail(n.Node); text != "" {
			parts = append(parts, text)
		}
	}
	if n.Def().Kind == op.Reduction && n.Out.Shape.Rank() > 0 {
		parts = append(parts, "->", dims(outExtent(n)))
	}
	return strings.Join(parts, " ")
}

// label returns the name of an operator within a task's name.
func label(n *graph.Node) string {
	switch d := n.Def(); {
	case d.Label == "":
		return strings.ToLower(n.Op)
	case d.Spatial:
		return fmt.Sprintf("%s%dd", d.Label, n.Out.Shape.Rank()-2)
	default:
		return d.Label
	}
}

// firstInput returns the first operand that is not a constant.
func firstInput(n *graph.Node) *graph.Value {
	for _, v := range n.Operands {
		if v != nil && v.Const == nil {
			return v
		}
	}
	return nil
}

// outExtent returns the number of channels for an image or a dense layer's result, and the whole shape for others.
func outExtent(n *graph.Node) []int64 {
	if n.Def().ChannelsOut {
		return n.Out.Shape.Max()[1:2]
	}
	return op.Physical(n.Out.Shape.Max(), n.Result.Layout)
}

func dims(shape []int64) string {
	if len(shape) == 0 {
		return "scalar"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", "x"), "[]")
}

func callName(kernel *graph.Kernel) string {
	var names []string
	for _, n := range kernel.Nodes {
		if !slices.Contains(names, n.Name) {
			names = append(names, n.Name)
		}
	}
	return strings.Join(names, "+")
}
