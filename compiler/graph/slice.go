package graph

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// sliceOf takes count indices of an axis from begin on.
func sliceOf(g *graph, v *value, axis int, begin, count int64, name string) (*node, error) {
	known := func(what string, k int64) *value {
		return g.constant(fmt.Sprintf("%s.%s", name, what), array.FromInt64([]int64{k}, 1))
	}
	return g.apply(op.Node{Name: name, Op: op.Slice, Opset: 13, Attrs: map[string]*onnx.Attribute{}}, name,
		v, known("starts", begin), known("ends", begin+count), known("axes", int64(axis)))
}
