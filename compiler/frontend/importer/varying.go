package importer

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// varies records how a value depends on extents that each execution chooses: in its extents, its elements, or both.
// A constant of which both vary, such as a mask for the tokens after the past, is computed in each execution. If
// only its extents vary, a smaller one is a prefix of a larger one. If only its elements vary, it is a short list
// of numbers, such as a shape.
type varies struct{ extents, elements bool }

func (v varies) whole() bool { return v.extents && v.elements }

// shapedBy lists the operands whose elements determine the result shape of operators, and those of them that do not
// affect the elements.
var shapedBy = map[string]struct{ shape, only []int }{
	op.Reshape:        {[]int{1}, []int{1}},
	op.Expand:         {[]int{1}, []int{1}},
	"Tile":            {[]int{1}, []int{1}},
	"ConstantOfShape": {[]int{0}, []int{0}},
	op.Range:          {[]int{0, 1, 2}, []int{1}},
	op.Slice:          {[]int{1, 2}, []int{2}},
	op.Pad:            {[]int{1}, nil},
	"Resize":          {[]int{2, 3}, nil},
	op.Upsample:       {[]int{1}, nil},
	op.TopK:           {[]int{1}, nil},
	"OneHot":          {[]int{1}, []int{1}},
}

// inputVaries records which axes of an input have open extents.
func (b *builder) inputVaries(v *graph.Value, info *onnx.ValueInfo) {
	for axis, d := range info.Shape {
		if d.Value < 0 && slices.Contains(b.open, d.Param) {
			b.Graph.Varying[v] = append(b.Graph.Varying[v], axis)
			b.varying[v] = varies{extents: true}
		}
	}
}

// noteResults records the dependencies of a node's results on open extents.
func (b *builder) noteResults(s *scope, names []string) {
	if len(b.open) == 0 {
		return
	}
	for _, name := range names {
		if it := s.items[name]; it != nil && it.Tensor != nil {
			b.Graph.Results[name] = append(b.Graph.Results[name], b.values[it.Tensor])
		}
	}
}

// resultVaries returns how a node's result depends on open extents.
func (b *builder) resultVaries(n *graph.Node) (result varies) {
	if len(b.open) == 0 {
		return varies{}
	}
	shaped := shapedBy[n.Op]
	for k, v := range n.Operands {
		of := b.varying[v] // zero for omitted operands
		switch {
		case n.Is(op.Shape) || n.Is("Size"):
			result.elements = result.elements || of.extents
			continue
		case n.Def().Kind == op.Reduction, n.Is(op.Concat) && k < len(n.Operands)-1:
			result.elements = result.elements || of.extents
		}
		result.extents = result.extents || of.extents || of.elements && slices.Contains(shaped.shape, k)
		result.elements = result.elements || of.elements && !slices.Contains(shaped.only, k)
	}
	result.extents = result.extents && n.Out.Shape.Rank() > 0
	return result
}

// isFolded reports whether a node's result is a constant.
func isFolded(n *graph.Node, result varies) bool {
	switch {
	case graph.IsEmpty(n.Out.Shape.Fixed()), n.Def().Kind == op.Known:
		return true
	}
	return graph.AllKnown(n.Operands) && !n.Weights && !result.whole()
}

// asSteps returns a Range as an operator that each execution computes, if its elements depend on open extents.
func (b *builder) asSteps(n *graph.Node, result varies) (*graph.Node, error) {
	if !n.Is(op.Range) || !result.whole() || graph.IsEmpty(n.Out.Shape.Fixed()) {
		return n, nil
	}
	count := &onnx.Attribute{Name: "count", Type: onnx.AttrInt, Int: n.Out.Shape.Fixed()[0]}
	steps := op.Node{Name: n.Name, Op: op.Steps, Opset: n.Opset, Attrs: map[string]*onnx.Attribute{"count": count}, Outputs: 1}
	return b.Apply(steps, n.Result.Name, n.Operands[0], n.Operands[2])
}
