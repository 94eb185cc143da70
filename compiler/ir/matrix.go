package ir

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// MultiplyMatrices adds the product of two matrices to the sums of a warp. All are distributed over the registers
// of its threads in instruction layout. All threads of the warp execute it together.
type MultiplyMatrices struct {
	Format schedule.Format
	// TypeA and TypeB are the types of the factors.
	TypeA, TypeB array.DType
	// Sum has 16 by 8 results: each thread holds two neighbours at SumIndex, and two more at a distance of
	// RowElements.
	Sum         *Buffer
	SumIndex    expr.Expr
	RowElements int64
	// A has 4 registers per thread at AIndex, B has 2 at BIndex, each created by a Fragment or by LoadMatrices.
	A, B           *Buffer
	AIndex, BIndex expr.Expr
}

func (*MultiplyMatrices) stmt() {}

// LoadMatrices loads matrices of 8 rows of 16 bytes from shared memory to the registers of a warp's threads, one
// register per thread and matrix. All threads of the warp execute it together.
type LoadMatrices struct {
	// To receives Count registers per thread, starting at ToIndex with the first matrix.
	To      *Buffer
	ToIndex expr.Expr
	// From holds the rows. FromIndex is the start of the row that a thread addresses, at a multiple of 16 bytes:
	// thread 8k + n of the warp addresses row n of matrix k. Threads without a matrix address any existing row.
	From      *Buffer
	FromIndex expr.Expr
	// Count is 1, 2 or 4.
	Count int64
	// Turned is set if a register receives neighbours of a column, of 16 bits each, instead of neighbours of a row.
	Turned bool
}

func (*LoadMatrices) stmt() {}

// MatrixRowBytes is the length of a row that LoadMatrices loads.
const MatrixRowBytes = 16

// RowElements returns the number of elements of such a row.
func (n *LoadMatrices) RowElements() int64 { return MatrixRowBytes / n.From.Tensor.DType.Bytes() }

// valid reports whether the registers are private to threads, and the rows are in shared memory with the declared
// layout.
func (n *LoadMatrices) valid() bool {
	return n.To.Space == Private && n.From.Space == Shared && n.From.Row == 0 && (!n.Turned || n.From.Tensor.DType.Bytes() == 2)
}

func (t *texter) loadMatrices(n *LoadMatrices) {
	turned := ""
	if n.Turned {
		turned = " turned"
	}
	t.line("%s[%s] = %d matrices%s from %s[%s]", n.To.Tensor.Name, t.expr(n.ToIndex), n.Count, turned, n.From.Tensor.Name, t.expr(n.FromIndex))
}

// The extents of the matrix of sums.
const (
	MatrixRows    = 16
	MatrixColumns = 8
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
