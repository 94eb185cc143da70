package codegen

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/ctext"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// element is an element of a buffer in memory, as C. What varies of its index is in a pointer of its own, so that the
// many accesses of an unrolled tile differ by constants only, which an instruction has room for. The pointer adds up
// its terms from the outermost loop's inwards: each sum but the last is the same in all iterations of the innermost
// loop, and compilers move it out by the cheapest of their passes.
func (p *printer) element(t *expr.Tensor, at expr.Linear) string {
	if len(at.Terms) > 0 && p.guarded > 0 {
		return fmt.Sprintf("%s[%s + %s]", p.buffer(t), p.sum(at.Terms), ctext.IntLiteral(at.Const, array.Int64))
	}
	return fmt.Sprintf("%s[%s]", p.origin(t, at.Terms), ctext.IntLiteral(at.Const, array.Int64))
}

// origin is a variable that points as many elements behind a buffer's begin as the terms of an index add up to,
// declared once in each block that needs it. It may point out of the buffer where a constant leads back into it.
func (p *printer) origin(t *expr.Tensor, terms []expr.Term) string {
	if len(terms) == 0 {
		return p.buffer(t)
	}
	code := "&" + p.buffer(t) + "[0] + " + p.sum(p.outermostFirst(terms)) // not of an array, whose bounds sums may leave on the way
	if name, ok := p.pointers[code]; ok {
		return name
	}
	name := p.kernel.fresh("q")
	p.line("__auto_type const %s = %s;", name, code)
	p.pointers[code] = name
	return name
}

// outermostFirst sorts terms by how deep in the loops their values change.
func (p *printer) outermostFirst(terms []expr.Term) []expr.Term {
	if len(terms) < 2 {
		return terms
	}
	depth := func(t expr.Term) (deepest int) {
		expr.Walk(t.Atom, func(e expr.Expr) {
			switch x := e.(type) {
			case *expr.Var:
				deepest = max(deepest, p.depths[x])
			case *expr.Load:
				if r := p.registers[x.Tensor]; r != nil {
					deepest = max(deepest, r.depth)
				}
			}
		})
		return deepest
	}
	return slices.SortedStableFunc(slices.Values(terms), func(a, b expr.Term) int { return cmp.Compare(depth(a), depth(b)) })
}

// sum prints terms as a sum.
func (p *printer) sum(terms []expr.Term) (code string) {
	for k, t := range terms {
		if k > 0 {
			code += " + "
		}
		code += p.scalar(t.Atom)
		if t.Coef != 1 {
			code += " * " + ctext.IntLiteral(t.Coef, array.Int64)
		}
	}
	return code
}
