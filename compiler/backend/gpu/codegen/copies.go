package codegen

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/ir"
)

// copy prints a copy by a word. An argument may be a part of another tensor, and lie anywhere: a copy of several
// elements is one only where it is aligned.
func (p *printer) copy(n *ir.Copy, word string) {
	valid := "1"
	if n.Valid != nil {
		valid = p.scalars.Text(n.Valid)
	}
	to, from := p.buffers[n.To.Tensor], p.buffers[n.From.Tensor]
	at, element := p.index(n.Index), p.index(n.From.Index[0])
	bytes := n.To.Tensor.DType.Bytes()
	if n.Elements == 1 {
		p.line("%s(%d, %s, %s, %s, %s, %s);", word, bytes, to, at, from, element, valid)
		return
	}
	single := word
	if bytes < leastAsync {
		single = "COPY"
	}
	p.line("if (ALIGNED(%s)) {", from)
	p.line("  %s(%d, %s, %s, %s, %s, %s);", word, n.Elements*bytes, to, at, from, element, valid)
	p.line("} else {")
	for k := range n.Elements {
		p.line("  %s(%d, %s, %s, %s, %s, %s);", single, bytes, to, fmt.Sprintf("%s + %d", at, k), from, fmt.Sprintf("%s + %d", element, k), valid)
	}
	p.line("}")
}

// leastAsync is the least that an asynchronous copy copies, in bytes.
const leastAsync = 4
