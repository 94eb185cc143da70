package graph

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// sliceGathers makes a Gather of one known index a slice and a reshape, as in taking queries, keys and values apart or
// the first token of a sequence: then it is read where it lies.
func sliceGathers(g *graph) error {
	for k := 0; k < len(g.nodes); k++ {
		n := g.nodes[k]
		axis, index, ok := singleIndex(n)
		if !ok {
			continue
		}
		s, err := sliceOf(g, n.in[0], axis, index, 1, n.out.name+".slice")
		if err != nil {
			return err
		}
		shape := g.constant(n.out.name+".shape", array.FromInt64(n.Out.Shape, int64(len(n.Out.Shape))))
		r, err := g.apply(op.Node{Name: n.Name, Op: op.Reshape, Opset: 13, Attrs: map[string]*onnx.Attribute{}}, n.out.name, s.out, shape)
		if err != nil {
			return err
		}
		g.replace(n.out, r.out)
		g.nodes = slices.Replace(g.nodes, k, k+1, s, r)
	}
	return nil
}

// singleIndex is the axis and index of a Gather that takes one known index of a value that is computed.
func singleIndex(n *node) (axis int, index int64, ok bool) {
	if !n.is(op.Gather) || n.in[0].Const != nil || n.in[1].Const == nil || n.in[1].Const.Len() != 1 {
		return 0, 0, false
	}
	axis = int(n.Int("axis", 0))
	if axis < 0 {
		axis += len(n.in[0].Shape)
	}
	index = n.in[1].Const.Int(0)
	if index < 0 {
		index += n.in[0].Shape[axis]
	}
	return axis, index, index >= 0 && index < n.in[0].Shape[axis]
}
