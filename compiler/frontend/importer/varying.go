package importer

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// varies says what of a value depends on extents that each execution chooses: how many elements it has on some axis,
// or what they are. A constant of which both do is another one with each extent, as the mask of the tokens behind a
// past is: it is computed in each execution. Where its extents alone depend on them, a smaller one is the beginning of
// a larger; where its elements alone do, it is a few numbers, such as a shape.
type varies struct{ extents, elements bool }

func (v varies) whole() bool { return v.extents && v.elements }

// shapedBy are the operands from whose elements operators take the shape of their results, and those of them that say
// nothing of the elements.
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

// inputVaries notes which axes of an input have open extents.
func (b *builder) inputVaries(v *graph.Value, info *onnx.ValueInfo) {
	for axis, d := range info.Shape {
		if d.Value < 0 && slices.Contains(b.open, d.Param) {
			b.Graph.Varying[v] = append(b.Graph.Varying[v], axis)
			b.varying[v] = varies{extents: true}
		}
	}
}

// noteResults notes what a node of the model has computed, where extents are open.
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

// resultVaries is what of a node's result depends on open extents.
func (b *builder) resultVaries(n *graph.Node) (result varies) {
	if len(b.open) == 0 {
		return varies{}
	}
	shaped := shapedBy[n.Op]
	for k, v := range n.Operands {
		of := b.varying[v] // nothing, where it is left out
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
	result.extents = result.extents && len(n.Out.Shape) > 0
	return result
}

// isFolded reports whether a node's result is a constant.
func isFolded(n *graph.Node, result varies) bool {
	switch {
	case graph.IsEmpty(n.Out.Shape), n.Def().Kind == op.Known:
		return true
	}
	return graph.AllKnown(n.Operands) && !n.Weights && !result.whole()
}

// asSteps is a Range as an operator that each execution computes, where its elements depend on open extents.
func (b *builder) asSteps(n *graph.Node, result varies) (*graph.Node, error) {
	if !n.Is(op.Range) || !result.whole() || graph.IsEmpty(n.Out.Shape) {
		return n, nil
	}
	count := &onnx.Attribute{Name: "count", Type: onnx.AttrInt, Int: n.Out.Shape[0]}
	steps := op.Node{Name: n.Name, Op: op.Steps, Opset: n.Opset, Attrs: map[string]*onnx.Attribute{"count": count}, Outputs: 1}
	return b.Apply(steps, n.Result.Name, n.Operands[0], n.Operands[2])
}
