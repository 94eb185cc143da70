package codegen

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// separate keeps the steps of an unrolled reduction apart where its accumulators take half of the registers or more:
// behind a step nothing is loaded for the one before, nor ahead of it for the next. LLVM puts loads from addresses
// near one another next to each other, and had to spill an accumulator for them in each step: a 7x7 convolution of 3
// channels took 3.8 ms with it and 2.6 without. Fetches keep loads apart as well.
func (p *printer) separate(n *ir.Store) {
	reg := p.registers[n.Buffer.Tensor]
	if reg == nil || 2*int64(len(reg.Slots)) < p.unit.vectorRegisters || len(p.fetched) > 0 {
		return
	}
	_, name := reg.find(expr.Linearize(n.Index).Plus(expr.Linearize(p.lane), -1).Const)
	if p.stepped[name] {
		p.line("__asm__ volatile(\"\" ::: \"memory\");")
		clear(p.stepped)
	}
	p.stepped[name] = true
}
