package graph

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/op"
)

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
