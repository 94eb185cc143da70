package codegen

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// element returns an element of a buffer in memory as C. The varying part of its index goes into a pointer, so that
// the many accesses of an unrolled tile differ only in constants, which fit into the instructions. The pointer adds
// its terms from the outermost loop inwards. All partial sums but the last are invariant in the innermost loop, and
// compilers hoist them with a cheap pass.
func (p *printer) element(t *expr.Tensor, at expr.Linear) string {
	if len(at.Terms) > 0 && p.guarded > 0 {
		return fmt.Sprintf("%s[%s + %s]", p.buffer(t), p.sum(at.Terms), cprint.IntLiteral(at.Const, array.Int64))
	}
	if len(at.Terms) == 0 {
		return fmt.Sprintf("%s[%s]", p.buffer(t), cprint.IntLiteral(at.Const, array.Int64))
	}
	from := p.origin(t, at)
	return fmt.Sprintf("%s[%s]", from.name, cprint.IntLiteral(at.Const-from.offset, array.Int64))
}

// pointer is a C variable that points a number of elements past the position given by an index's terms.
type pointer struct {
	name   string
	offset int64
}

// origin returns a pointer for an element and for all elements whose indices have the same terms, declared once per
// block. If compilers know the buffer's length, the pointer never leaves the buffer: it points to the first of these
// elements if the terms alone might lead outside. Compilers treat out-of-bounds pointers as impossible, and gcc drops
// iterations in which a pointer leaves an array temporarily. For other buffers the pointer omits the constant, which
// may lead back.
func (p *printer) origin(t *expr.Tensor, at expr.Linear) pointer {
	begin, sum := "&"+p.buffer(t)+"[0]", p.sum(p.outermostFirst(at.Terms))
	if known, ok := p.pointers[begin+sum]; ok {
		return known
	}
	from := pointer{name: p.kernel.fresh("q")}
	code := sum
	if lo, _, ok := (expr.Linear{Terms: at.Terms}).Bounds(); p.arrays[t] && (!ok || lo < 0 || at.Const < 0) {
		from.offset = at.Const
		code = fmt.Sprintf("(%s + %s)", cprint.IntLiteral(at.Const, array.Int64), sum)
	}
	p.line("__auto_type const %s = %s + %s;", from.name, begin, code)
	p.pointers[begin+sum] = from
	return from
}

// outermostFirst sorts terms by the loop depth at which their values change, outermost first.
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
			code += " * " + cprint.IntLiteral(t.Coef, array.Int64)
		}
	}
	return code
}

// abiName returns the type's constant in the kernel ABI.
func abiName(d array.DType) string {
	names := map[array.DType]string{
		array.Float32: "FLOAT32", array.Float64: "FLOAT64", array.Float16: "FLOAT16", array.BFloat16: "BFLOAT16",
		array.Int8: "INT8", array.Int16: "INT16", array.Int32: "INT32", array.Int64: "INT64",
		array.Uint8: "UINT8", array.Uint16: "UINT16", array.Uint32: "UINT32", array.Uint64: "UINT64", array.Bool: "BOOL",
	}
	return "TILTH_" + names[d]
}
