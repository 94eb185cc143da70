package codegen

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/ir"
)

// copier prints a copy by a word.
type copier struct {
	*printer
	*ir.Copy
	word string
}

// copierOf is a statement that copies; ok is false where it does something else.
func (p *printer) copierOf(st ir.Stmt) (c copier, ok bool) {
	switch n := st.(type) {
	case *ir.Copy:
		return copier{p, n, "COPY"}, true
	case *ir.CopyAsync:
		return copier{p, &n.Copy, "COPY_ASYNC"}, true
	}
	return c, false
}

// copy prints a copy. An argument may be a part of another tensor, and lie anywhere: a copy of several elements is one
// only where it is aligned.
func (c copier) copy() {
	if c.Elements == 1 {
		c.all()
		return
	}
	c.whereAligned(c.all, c.each)
}

// rounds prints a loop that is one copy again and again, and asks once whether it is aligned. Few rounds are written
// out.
func (c copier) rounds(n *ir.For) {
	v := c.variable(n.Var)
	loop := func(body func()) {
		c.line("for (%s %s = 0; %s < %d; %s++) {", c.scalars.Index, v, v, n.Extent, v)
		c.indented(body)
		c.line("}")
	}
	c.whereAligned(func() {
		if n.Extent <= mostRounds {
			c.line("UNROLL")
		}
		loop(c.all)
	}, func() { loop(c.each) })
}

// mostRounds is how many rounds of a copy are written out at most.
const mostRounds = 8

// whereAligned prints what is for an array that is aligned, and what is for others where that is not known before the
// kernel runs.
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
func (c copier) all() { c.part(c.word, 0, c.Elements) }

// each copies one element after the other.
func (c copier) each() {
	word := c.word
	if c.To.Tensor.DType.Bytes() < leastAsync {
		word = "COPY"
	}
	for k := range c.Elements {
		c.part(word, k, 1)
	}
}

// leastAsync is the least that an asynchronous copy copies, in bytes.
const leastAsync = 4

// part copies some elements from one on.
func (c copier) part(word string, first, elements int64) {
	valid, behind := "1", ""
	if c.Valid != nil {
		valid = c.scalars.Text(c.Valid)
	}
	if first > 0 {
		behind = fmt.Sprintf(" + %d", first)
	}
	c.line("%s(%d, %s, %s%s, %s, %s%s, %s);", word, elements*c.To.Tensor.DType.Bytes(), c.buffers[c.To.Tensor], c.index(c.Index), behind,
		c.buffers[c.From.Tensor], c.index(c.From.Index[0]), behind, valid)
}
