package product

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/machine"
)

// Traffic is the cycles in which a multiprocessor gets what a block fetches in a step: from the cache, into which the
// operands come once.
func (p *Product) Traffic(b Box) float64 {
	all := 0.0
	for _, o := range p.Operands {
		all += float64(array.Elements(o.Load.Tensor.Shape) * o.Load.DType().Bytes())
	}
	steps, _ := p.Steps(b)
	return machine.Traffic(float64(p.FetchedBytes(b)), all/float64(p.Blocks(b)*steps))
}
