package rewrite

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// sliceGathers turns a Gather of one known index into a slice and a reshape, as where exporters separate queries,
// keys and values or take the first token of a sequence. It is then read in place.
func sliceGathers(g *graph.Graph) {
	for k := 0; k < len(g.Nodes); k++ {
		n := g.Nodes[k]
		if axis, index, ok := singleIndex(n); ok {
			s := sliceOf(g, n.Operands[0], axis, index, 1, n.Result.Name+".slice")
			g.Splice(k, s, op.Get(viewOf(g, s.Result, n.Out.Shape, n.Name, n.Result.Name)))
		}
	}
}

// singleIndex returns the axis and index of a Gather that takes one known index of a computed value.
func singleIndex(n *graph.Node) (axis int, index int64, ok bool) {
	if !n.Is(op.Gather) || n.Operands[0].Const != nil || n.Operands[1].Const == nil || n.Operands[1].Const.Len() != 1 {
		return 0, 0, false
	}
	axis = int(n.Int("axis", 0))
	if axis < 0 {
		axis += n.Operands[0].Shape.Rank()
	}
	index = n.Operands[1].Const.Int(0)
	size := n.Operands[0].Shape.At(axis)
	if fixed, ok := size.Const(); index < 0 && ok {
		index += fixed
	}
	return axis, index, index >= 0 && extent.Of(index).Less(size)
}

// sliceOf takes count indices of an axis from begin on.
func sliceOf(g *graph.Graph, v *graph.Value, axis int, begin, count int64, name string) *graph.Node {
	known := func(what string, k int64) *graph.Value {
		return g.Constant(fmt.Sprintf("%s.%s", name, what), array.FromInt64([]int64{k}, 1))
	}
	return op.Get(g.Apply(op.Node{Name: name, Op: op.Slice, Opset: 13, Attrs: map[string]*onnx.Attribute{}}, name,
		v, known("starts", begin), known("ends", begin+count), known("axes", int64(axis))))
}
