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
		if n.Op != "Conv" || n.Text("auto_pad", "NOTSET") != "NOTSET" {
			continue
		}
		p := n.in[0].producer
		if p == nil || p.Op != "Pad" || !zeroPad(p) {
			continue
		}
		before, after := op.PadAmounts(p.Node)
		rank := len(before) - 2
		pads := slices.Clone(n.Ints("pads", make([]int64, 2*rank)))
		for j := range rank {
			pads[j] += before[2+j]
			pads[j+rank] += after[2+j]
		}
		if slices.Min(slices.Concat(before, after)) < 0 || before[0]+after[0]+before[1]+after[1] != 0 {
			continue
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

func zeroPad(p *node) bool {
	value := p.Float("value", 0)
	if p.Has(2) {
		value = p.In[2].Const.Float(0)
	}
	return value == 0 && p.Text("mode", "constant") == "constant"
}
