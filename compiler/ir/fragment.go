package ir

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Fragment is a register of an operand: neighbouring terms of a row or a column, in a format.
type Fragment struct {
	Format schedule.Format
	// Rest is set for the rounding remainder of each element.
	Rest bool
	// Elements holds Format.Packed elements, the first one in the lowest bits.
	Elements []expr.Expr
}

// DType returns the type of a register.
func (r *Fragment) DType() array.DType { return array.Uint32 }

// Operands returns the elements.
func (r *Fragment) Operands() []expr.Expr { return r.Elements }

// Map replaces the elements.
func (r *Fragment) Map(f func(expr.Expr) expr.Expr) expr.Expr {
	c := *r
	c.Elements = make([]expr.Expr, len(r.Elements))
	for k, x := range r.Elements {
		c.Elements[k] = f(x)
	}
	return &c
}

func (t *texter) fragment(r *Fragment) string {
	elements := make([]string, len(r.Elements))
	for k, x := range r.Elements {
		elements[k] = t.expr(x)
	}
	rest := ""
	if r.Rest {
		rest = " rest"
	}
	return fmt.Sprintf("%v%s(%s)", r.Format, rest, strings.Join(elements, ", "))
}
