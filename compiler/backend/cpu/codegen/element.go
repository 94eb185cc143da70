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
	if len(at.Terms) == 0 {
		return fmt.Sprintf("%s[%s]", p.buffer(t), ctext.IntLiteral(at.Const, array.Int64))
	}
	from := p.origin(t, at)
	return fmt.Sprintf("%s[%s]", from.name, ctext.IntLiteral(at.Const-from.offset, array.Int64))
}

// pointer is a C variable that points so many elements behind where the terms of an index lead.
type pointer struct {
	name   string
	offset int64
}

// origin is a pointer for an element and for all whose indices have the same terms, declared once in each block that
// needs it. Where compilers know how long the buffer is, it never leaves it: it points to the first of these elements
// if the terms alone might lead elsewhere. Compilers take that for impossible, and gcc drops iterations in which a
// pointer leaves an array on its way. Into other buffers it points without the constant, which may lead back.
func (p *printer) origin(t *expr.Tensor, at expr.Linear) pointer {
	begin, sum := "&"+p.buffer(t)+"[0]", p.sum(p.outermostFirst(at.Terms))
	if known, ok := p.pointers[begin+sum]; ok {
		return known
	}
	from := pointer{name: p.kernel.fresh("q")}
	code := sum
	if lo, _, ok := (expr.Linear{Terms: at.Terms}).Bounds(); p.arrays[t] && (!ok || lo < 0 || at.Const < 0) {
		from.offset = at.Const
		code = fmt.Sprintf("(%s + %s)", ctext.IntLiteral(at.Const, array.Int64), sum)
	}
	p.line("__auto_type const %s = %s + %s;", from.name, begin, code)
	p.pointers[begin+sum] = from
	return from
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
