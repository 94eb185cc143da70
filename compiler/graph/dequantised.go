package graph

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/op"
)

// splitDequantised gives each reader of a dequantised value a dequantisation of its own. Then what is stored are the
// integers, a quarter of the memory, and each reader's kernel makes floats of them while it reads.
func splitDequantised(g *graph) error {
	users := g.users()
	for _, n := range slices.Clone(g.nodes) {
		if !n.is(op.Dequantize) || g.isOutput(n.out) || len(users[n.out]) < 2 {
			continue
		}
		for _, reader := range users[n.out][1:] {
			own, err := g.apply(op.Node{Name: n.Name, Op: n.Op, Opset: n.Opset, Attrs: n.Attrs}, n.out.name, n.in...)
			if err != nil {
				return err
			}
			g.insert(slices.Index(g.nodes, n)+1, own)
			for k, v := range reader.in {
				if v == n.out {
					reader.in[k] = own.out
				}
			}
		}
	}
	return nil
}

// absorbDequantised moves kernels that only dequantise into the one element-wise operator that reads them, as the
// addition at the end of a residual block.
func (p *partitioner) absorbDequantised(groups []*group) []*group {
	var absorbed []*group
	for _, grp := range groups {
		for k := 0; k < len(grp.nodes); k++ {
			n := grp.nodes[k]
			if n == grp.anchor || n.Def().Kind != op.ElementWise {
				continue
			}
			for _, v := range n.in {
				f := p.prologue(v, grp)
				if f == nil || f == grp || len(f.nodes) != 1 || !f.anchor.is(op.Dequantize) || slices.Contains(absorbed, f) {
					continue
				}
				grp.nodes = slices.Insert(grp.nodes, k, f.anchor)
				f.anchor.group = grp
				absorbed = append(absorbed, f)
				k++
			}
		}
	}
	return slices.DeleteFunc(groups, func(g *group) bool { return slices.Contains(absorbed, g) })
}
