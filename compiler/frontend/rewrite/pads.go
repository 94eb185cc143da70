package rewrite

import (
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// foldPads moves a Pad with zeros on spatial axes into the convolution that reads it.
func foldPads(g *graph.Graph) {
	for k, n := range g.Nodes {
		if !n.Def().ZeroPads || n.Text("auto_pad", "NOTSET") != "NOTSET" || n.Operands[0].Producer == nil {
			continue
		}
		p := n.Operands[0].Producer
		before, after, ok := op.ZeroPads(p.Node)
		if !ok || before[0]+after[0]+before[1]+after[1] != 0 {
			continue
		}
		rank := len(before) - 2
		pads := slices.Clone(n.Ints("pads", make([]int64, 2*rank)))
		for j := range rank {
			pads[j] += before[2+j]
			pads[j+rank] += after[2+j]
		}
		attrs := maps.Clone(n.Attrs)
		attrs["pads"] = &onnx.Attribute{Name: "pads", Type: onnx.AttrInts, Ints: pads}
		in := append([]*graph.Value{p.Operands[0]}, n.Operands[1:]...)
		g.Splice(k, op.Get(g.Apply(op.Node{Name: n.Name, Op: n.Op, Opset: n.Opset, Attrs: attrs}, n.Result.Name, in...)))
	}
}
