package ir

import "github.com/tilth-dev/tilth/compiler/expr"

// SquareLanes is the number of sums in a square: two rows by two columns.
const SquareLanes = 4

// Squares rearranges two vectors of SquareLanes sums, from one row each to one square each, with the sums of both
// rows and of two columns.
type Squares struct {
	// Sums is a buffer in registers, in which the vectors start at the elements At.
	Sums *Buffer
	At   [2]int64
	// Turned is set if squares are column-major.
	Turned bool
	// Back is set for the conversion of squares to rows.
	Back bool
}

// SquareProduct adds to two squares of sums the products of Terms terms of two rows and of four columns.
type SquareProduct struct {
	// Sums, At and Turned are those of Squares.
	Sums   *Buffer
	At     [2]int64
	Turned bool
	Terms  int64
	// Rows are registers that repeat the terms of one row each. Columns holds the columns one after the other.
	Rows    [2]*Buffer
	Columns *Buffer
}

func (*Squares) stmt()       {}
func (*SquareProduct) stmt() {}

// square prints a statement on squares.
func (t *texter) square(st Stmt) {
	switch n := st.(type) {
	case *Squares:
		to := "squares"
		if n.Back {
			to = "rows"
		}
		t.line("%[1]s[%[2]d], %[1]s[%[3]d] to %[4]s%[5]s", n.Sums.Tensor.Name, n.At[0], n.At[1], to, turned(n.Turned))
	case *SquareProduct:
		t.line("squares%[1]s %[2]s[%[3]d], %[2]s[%[4]d] = they + %[5]d terms of %[6]s and %[7]s, %[8]s", turned(n.Turned), n.Sums.Tensor.Name, n.At[0], n.At[1], n.Terms,
			t.registers[n.Rows[0].Tensor], t.registers[n.Rows[1].Tensor], t.registers[n.Columns.Tensor])
	}
}

func turned(is bool) string {
	if is {
		return " by columns"
	}
	return ""
}

// squareExprs calls f for the operands and destinations of a statement on squares.
func squareExprs(st Stmt, f func(expr.Expr)) {
	sums := func(b *Buffer, at [2]int64) {
		for _, k := range at {
			f(b.Tensor.At(expr.I(k)))
		}
	}
	switch n := st.(type) {
	case *Squares:
		sums(n.Sums, n.At)
	case *SquareProduct:
		sums(n.Sums, n.At)
		for _, b := range append(n.Rows[:], n.Columns) {
			f(b.Tensor.At(expr.I(0)))
		}
	}
}

// isSquares reports whether a statement's sums are two vectors in registers.
func isSquares(st Stmt) bool {
	two := func(b *Buffer, at [2]int64) bool {
		found := 0
		for _, s := range b.Slots {
			if s.Lanes == SquareLanes && (s.Base == at[0] || s.Base == at[1]) {
				found++
			}
		}
		return b.Space == Register && found == 2
	}
	switch n := st.(type) {
	case *Squares:
		return two(n.Sums, n.At)
	case *SquareProduct:
		return two(n.Sums, n.At)
	}
	return true
}
