package rewrite

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// absorbPrologues makes an elementwise kernel the prologue of the product that is its only reader, such as the
// normalisation and activation after the concatenations of a dense block, or the scaling of squeeze-and-excitation.
// The product computes it block by block, and the result never goes through memory.
func (p *partitioner) absorbPrologues(kernels []*graph.Kernel) []*graph.Kernel {
	var absorbed []*graph.Kernel
	for _, kernel := range kernels {
		for _, v := range kernel.Anchor.Operands {
			f := p.prologue(v, kernel)
			if f == nil || slices.Contains(absorbed, f) || !takesPrologue(kernel.Anchor, f) {
				continue
			}
			kernel.Nodes = slices.Concat(f.Nodes, kernel.Nodes)
			kernel.Prologue = append(kernel.Prologue, v)
			absorbed = append(absorbed, f)
		}
	}
	return slices.DeleteFunc(kernels, func(k *graph.Kernel) bool { return slices.Contains(absorbed, k) })
}

// takesPrologue reports whether a node is a product that reads each element of an operand for many results at one
// position: a 1x1 convolution, or a product with known weights. Nodes that read each element once, such as a global
// pooling, or only for its own row, such as a softmax, accept a dequantisation.
func takesPrologue(n *graph.Node, prologue *graph.Kernel) bool {
	p, ok := n.Product()
	takesBytes := n.Def().Once || n.Def().Rowwise
	return ok && p.Pointwise || takesBytes && len(prologue.Nodes) == 1 && prologue.Anchor.Is(op.Dequantize)
}

// prologue returns the elementwise kernel that computes v for the kernel's anchor alone, or nil.
func (p *partitioner) prologue(v *graph.Value, kernel *graph.Kernel) *graph.Kernel {
	if v == nil || v.Producer == nil || v.Within != nil || p.IsOutput(v) || len(p.readers[v]) != 1 {
		return nil
	}
	f := v.Producer.Kernel
	if f == nil || f.Tail().Result != v || len(f.Stored) != 1 || len(f.Nodes)+len(kernel.Nodes) > maxNodes {
		return nil
	}
	if slices.ContainsFunc(f.Nodes, func(n *graph.Node) bool { return n.Def().Kind != op.ElementWise }) {
		return nil
	}
	return f
}
