package codegen

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// copier prints a copy with a macro of the dialect.
type copier struct {
	*printer
	*ir.Copy
}

// copy prints a copy. An argument may be a part of another tensor with any alignment. Several elements are copied at
// once only if they are aligned.
func (c copier) copy() {
	if c.Elements == 1 {
		c.all()
		return
	}
	c.whereAligned(c.all, c.each)
}

// rounds prints a loop that repeats one copy, with a single alignment check. It unrolls small trip counts.
func (c copier) rounds(n *ir.For) {
	v := c.variable(n.Var)
	loop := func(body func()) {
		c.line("for (%s %s = 0; %s < %d; %s++) {", c.scalars.Index, v, v, n.Extent, v)
		c.indented(body)
		c.line("}")
	}
	c.whereAligned(func() {
		if n.Extent <= maxRounds {
			c.line("UNROLL")
		}
		loop(c.all)
	}, func() { loop(c.each) })
}

// maxRounds is the maximum number of unrolled rounds of a copy.
const maxRounds = 8

// whereAligned prints code for an aligned array. If the alignment is unknown at compile time, it also prints the
// alternative.
func (c copier) whereAligned(aligned, not func()) {
	if c.aligned[c.From.Tensor] {
		aligned()
		return
	}
	c.line("if (ALIGNED(%s)) {", c.buffers[c.From.Tensor])
	c.indented(aligned)
	c.line("} else {")
	c.indented(not)
	c.line("}")
}

func (c copier) indented(print func()) {
	c.indent++
	print()
	c.indent--
}

// all copies all elements at once.
func (c copier) all() { c.part(c.Starts != nil, 0, c.Elements) }

// each copies the elements one by one.
func (c copier) each() {
	async := c.Starts != nil && c.To.Tensor.DType.Bytes() >= minAsync
	for k := range c.Elements {
		c.part(async, k, 1)
	}
}

// minAsync is the minimum size of an asynchronous copy in bytes.
const minAsync = 4

// part copies elements starting at first.
func (c copier) part(async bool, first, elements int64) {
	word, valid, behind := "COPY", "1", ""
	if async {
		word = "COPY_ASYNC"
	}
	if c.Valid != nil {
		valid = c.scalars.Text(c.Valid)
	}
	if first > 0 {
		behind = fmt.Sprintf(" + %d", first)
	}
	c.line("%s(%d, %s, %s%s, %s, %s%s, %s);", word, elements*c.To.Tensor.DType.Bytes(), c.buffers[c.To.Tensor], c.index(c.Index), behind,
		c.buffers[c.From.Tensor], c.index(c.From.Index[0]), behind, valid)
}

// maxStored is the maximum width of a thread's store in bytes.
const maxStored = 16

// neighbours prints a loop over contiguous elements of global memory as a single vector store. It returns false if
// the loop is no such store. Scalar stores would move as many memory sectors for each element as for all.
func (p *printer) neighbours(n *ir.For) bool {
	if n.Kind != ir.Unrolled && n.Kind != ir.Vector || n.Range != nil || len(n.Body) != 1 {
		return false
	}
	st, ok := n.Body[0].(*ir.Store)
	if !ok || !p.aligned[st.Buffer.Tensor] || slices.ContainsFunc(expr.Loads(st.Value), func(l *expr.Load) bool { return l.Tensor == st.Buffer.Tensor }) {
		return false
	}
	bytes := n.Extent * st.Buffer.Tensor.DType.Bytes()
	first, ok := expr.Neighbours(st.Index, n.Var, n.Extent)
	if !ok || n.Extent < 2 || bytes > maxStored || bytes&(bytes-1) != 0 {
		return false
	}
	scalar := cprint.TypeOf(st.Buffer.Tensor.DType).Scalar
	all := p.fresh("v")
	p.line("{")
	p.indent++
	p.line("V(%s, %d) %s;", scalar, n.Extent, all)
	for k := range n.Extent {
		lane := expr.Simplify(expr.Substitute(st.Value, map[*expr.Var]expr.Expr{n.Var: expr.I(k)}))
		p.line("%s[%d] = %s;", all, k, p.scalars.Text(lane))
	}
	p.line("STOREV(%s, %d, %s, %s, %s);", scalar, n.Extent, p.buffers[st.Buffer.Tensor], p.index(first), all)
	p.indent--
	p.line("}")
	return true
}
