package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// define prints a value that is held in a variable.
func (p *printer) define(n *ir.Define) {
	var t, code string
	if n.Lane == nil {
		t, code = cprint.TypeOf(n.Buffer.Tensor.DType).Scalar, p.scalar(n.Value)
	} else {
		p.lane, p.lanes = n.Lane, n.Lane.Extent
		t, code = p.unit.vector(n.Buffer.Tensor.DType, p.lanes), p.vector(n.Value)
		p.lane, p.lanes = nil, 1
	}
	name := p.kernel.fresh("t")
	p.registers[n.Buffer.Tensor] = &register{Buffer: n.Buffer, name: name, defined: true, depth: p.loops}
	p.line("const %s %s = %s;", t, name, code)
}

// prefetch prints a prefetch. Data that is read several times bypasses the first-level cache.
func (p *printer) prefetch(n *ir.Prefetch) {
	element := p.element(n.Tensor, n.Index)
	if n.Bytes.Const == 0 && len(n.Bytes.Terms) == 0 {
		p.line("__builtin_prefetch(&%s, %d);", element, map[bool]int{true: 1}[n.Write])
		return
	}
	if len(n.Bytes.Terms) == 0 {
		p.line("__builtin_prefetch((const char *)&%s + %d);", element, n.Bytes.Const)
		return
	}
	var offsets []string
	for _, t := range n.Bytes.Terms {
		offsets = append(offsets, fmt.Sprintf("%s * %d", p.scalar(t.Atom), t.Coef))
	}
	p.line("__builtin_prefetch((const char *)&%s + %s + %d, 0, 2);", element, strings.Join(offsets, " + "), n.Bytes.Const)
}
