package rewrite

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// absorbDequantised moves kernels that only dequantise into the elementwise operator that is their only reader,
// such as the addition at the end of a residual block.
func (p *partitioner) absorbDequantised(kernels []*graph.Kernel) []*graph.Kernel {
	var absorbed []*graph.Kernel
	for _, kernel := range kernels {
		for k := 0; k < len(kernel.Nodes); k++ {
			n := kernel.Nodes[k]
			if n == kernel.Anchor || n.Def().Kind != op.ElementWise {
				continue
			}
			for _, v := range n.Operands {
				f := p.prologue(v, kernel)
				if f == nil || f == kernel || len(f.Nodes) != 1 || !f.Anchor.Is(op.Dequantize) || slices.Contains(absorbed, f) {
					continue
				}
				kernel.Nodes = slices.Insert(kernel.Nodes, k, f.Anchor)
				f.Anchor.Kernel = kernel
				absorbed = append(absorbed, f)
				k++
			}
		}
	}
	return slices.DeleteFunc(kernels, func(k *graph.Kernel) bool { return slices.Contains(absorbed, k) })
}
