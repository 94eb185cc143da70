package rewrite

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// sliceOf takes count indices of an axis from begin on.
func sliceOf(g *graph.Graph, v *graph.Value, axis int, begin, count int64, name string) (*graph.Node, error) {
	known := func(what string, k int64) *graph.Value {
		return g.Constant(fmt.Sprintf("%s.%s", name, what), array.FromInt64([]int64{k}, 1))
	}
	return g.Apply(op.Node{Name: name, Op: op.Slice, Opset: 13, Attrs: map[string]*onnx.Attribute{}}, name,
		v, known("starts", begin), known("ends", begin+count), known("axes", int64(axis)))
}
