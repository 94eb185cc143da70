package graph

import (
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
)

// foldPads moves a Pad with zeros on spatial axes into the convolution that reads it.
func foldPads(g *graph) error {
	for k, n := range g.nodes {
		if !n.Def().ZeroPads || n.Text("auto_pad", "NOTSET") != "NOTSET" || n.in[0].producer == nil {
			continue
		}
		p := n.in[0].producer
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
		in := append([]*value{p.in[0]}, n.in[1:]...)
		folded, err := g.apply(op.Node{Name: n.Name, Op: n.Op, Opset: n.Opset, Attrs: attrs}, n.out.name, in...)
		if err != nil {
			return err
		}
		g.nodes[k] = folded
		g.replace(n.out, folded.out)
	}
	return nil
}
