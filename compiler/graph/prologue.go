package graph

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/op"
)

// absorbPrologues makes an element-wise kernel the prologue of the product that alone reads its result, such as the
// normalisation and activation behind the concatenations of a dense block, or the scaling by a squeeze-and-excitation:
// the product computes a block of them at a time, and their result never goes through memory.
func (p *partitioner) absorbPrologues(groups []*group) []*group {
	var absorbed []*group
	for _, grp := range groups {
		if !takesPrologue(grp.anchor) {
			continue
		}
		for _, v := range grp.anchor.in {
			f := p.prologue(v, grp)
			if f == nil || slices.Contains(absorbed, f) {
				continue
			}
			grp.nodes = slices.Concat(f.nodes, grp.nodes)
			grp.prologue = append(grp.prologue, v)
			absorbed = append(absorbed, f)
		}
	}
	return slices.DeleteFunc(groups, func(g *group) bool { return slices.Contains(absorbed, g) })
}

// takesPrologue reports whether a node is a product that reads each element of an operand for many results, at one
// position: a convolution of one pixel, or a product with known weights.
func takesPrologue(n *node) bool {
	p, ok := n.Product()
	return ok && p.Pointwise
}

// prologue is the element-wise kernel that computes v for the group's anchor and nobody else; nil when v is anything
// else.
func (p *partitioner) prologue(v *value, grp *group) *group {
	if v == nil || v.producer == nil || v.within != nil || p.isOutput(v) || len(p.readers[v]) != 1 {
		return nil
	}
	f := v.producer.group
	if f == nil || f.tail().out != v || len(f.stored) != 1 || len(f.nodes)+len(grp.nodes) > maxGroup {
		return nil
	}
	if slices.ContainsFunc(f.nodes, func(n *node) bool { return n.Def().Kind != op.ElementWise }) {
		return nil
	}
	return f
}
