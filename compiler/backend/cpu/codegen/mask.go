package codegen

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// mask returns a condition as a mask and the type of its lanes. A mask holds the lanes of a Bool vector during
// computation: 0 or -1, as signed integers of the compared type's width. In memory, and as a value of p.vector, Bool
// lanes are bytes of 0 or 1.
func (p *printer) mask(cond expr.Expr) (code string, d array.DType) {
	if !expr.Uses(cond, p.lane) {
		p.unit.vector(array.Int8, p.lanes)
		return fmt.Sprintf("%s_splat(-%s)", cprint.VectorName(array.Int8, p.lanes), p.scalar(cond)), array.Int8
	}
	switch n := cond.(type) {
	case *expr.Binary:
		if n.A.DType() == array.Bool {
			return p.logical(n)
		}
		return p.comparison(n)
	case *expr.Unary:
		return p.test(n)
	case *expr.Cast:
		return p.nonZero(n.A)
	}
	return p.nonZero(cond)
}

// maskOf returns a mask with lanes as wide as those of a type.
func (p *printer) maskOf(cond expr.Expr, width array.DType) string {
	code, d := p.mask(cond)
	return p.unit.resizeMask(code, d, cprint.TypeOf(width).Mask, p.lanes)
}

// resizeMask widens or narrows the lanes of a mask.
func (u *Unit) resizeMask(code string, from, to array.DType, lanes int64) string {
	if from == to {
		return code
	}
	return fmt.Sprintf("__builtin_convertvector(%s, %s)", code, u.vector(to, lanes))
}

// comparison compares two vectors of numbers.
func (p *printer) comparison(n *expr.Binary) (string, array.DType) {
	if cprint.IsHalf(n.A.DType()) {
		return p.mask(cprint.InFloat32(n))
	}
	d := cprint.TypeOf(n.A.DType()).Mask
	return fmt.Sprintf("((%s)(%s %s %s))", p.unit.vector(d, p.lanes), p.vector(n.A), cprint.Infix[n.Op], p.vector(n.B)), d
}

// logicalFormats holds the formats of operators on two masks.
var logicalFormats = map[expr.BinaryOp]string{
	expr.And: "(%s & %s)", expr.Min: "(%s & %s)", expr.Or: "(%s | %s)", expr.Max: "(%s | %s)", expr.Xor: "(%s ^ %s)",
	expr.Ne: "(%s ^ %s)", expr.Eq: "(~(%s ^ %s))", expr.Lt: "(~%s & %s)", expr.Le: "(~%s | %s)",
}

// logical combines two conditions.
func (p *printer) logical(n *expr.Binary) (string, array.DType) {
	a, d := p.mask(n.A)
	b, other := p.mask(n.B)
	return fmt.Sprintf(logicalFormats[n.Op], a, p.unit.resizeMask(b, other, d, p.lanes)), d
}

// test returns the negation of a condition, or a property of floating-point numbers.
func (p *printer) test(n *expr.Unary) (string, array.DType) {
	if n.Op == expr.Not {
		code, d := p.mask(n.A)
		return "(~" + code + ")", d
	}
	if cprint.IsHalf(n.A.DType()) {
		return p.mask(cprint.InFloat32(n))
	}
	d := cprint.TypeOf(n.A.DType()).Mask
	t, a := p.unit.vector(d, p.lanes), p.vector(n.A)
	if n.Op == expr.IsNaN {
		return fmt.Sprintf("((%s)(%s != %s))", t, a, a), d
	}
	infinity := fmt.Sprintf("__builtin_inf%s()", cprint.TypeOf(n.A.DType()).Builtin)
	return fmt.Sprintf("((%s)(%s(%s) == %s))", t, p.unit.helper("abs", n.A.DType(), p.lanes), a, infinity), d
}

// nonZero tests a vector of numbers, or of Bool in memory.
func (p *printer) nonZero(e expr.Expr) (string, array.DType) {
	if cprint.IsHalf(e.DType()) {
		e = expr.To(array.Float32, e)
	}
	d := cprint.TypeOf(e.DType()).Mask
	return fmt.Sprintf("((%s)(%s != 0))", p.unit.vector(d, p.lanes), p.vector(e)), d
}
