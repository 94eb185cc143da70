package rewrite

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// quantiseParts quantises the operands of a concatenation instead of its result: data movement then takes bytes,
// and each part is quantised by the kernel that computes it, or requantised from another scale. It leaves parts
// with other float readers, as in dense blocks, which share one buffer.
func quantiseParts(g *graph.Graph) error {
	users := g.Users()
	for k := 0; k < len(g.Nodes); k++ {
		n := g.Nodes[k]
		if !n.Is(op.Quantize) || !isScalar(n.Operands[1]) || len(n.Operands) > 2 && n.Operands[2] != nil && !isScalar(n.Operands[2]) {
			continue
		}
		whole := n.Operands[0]
		c := whole.Producer
		if c == nil || c.Def().Concat == nil || len(users[whole]) != 1 || g.IsOutput(whole) {
			continue
		}
		stays := func(v *graph.Value) bool {
			return v.Const != nil || v.Producer != nil && !v.Producer.Is(op.Dequantize) && (len(users[v]) > 1 || g.IsOutput(v))
		}
		if slices.ContainsFunc(c.Operands, stays) {
			continue
		}
		var made []*graph.Node
		parts := make([]*graph.Value, len(c.Operands))
		for i, v := range c.Operands {
			part, err := g.Apply(op.Node{Name: n.Name, Op: n.Op, Opset: n.Opset, Attrs: n.Attrs}, v.Name+".quantised", append([]*graph.Value{v}, n.Operands[1:]...)...)
			if err != nil {
				return err
			}
			made, parts[i] = append(made, part), part.Result
		}
		joined, err := g.Apply(op.Node{Name: c.Name, Op: c.Op, Opset: c.Opset, Attrs: c.Attrs}, n.Result.Name, parts...)
		if err != nil {
			return err
		}
		made = append(made, joined)
		g.Splice(k, made...)
		k += len(made) - 1
	}
	return nil
}
