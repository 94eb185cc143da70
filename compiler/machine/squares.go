package machine

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/arm"
)

// SquareLanes is the number of sums in a square: two rows by two columns.
const SquareLanes = 4

// HasSquares reports whether an instruction exists for that many terms of rows and columns of these types. turned is
// set if its first operand holds the columns.
func HasSquares(rows, columns array.DType, terms int64) (turned, ok bool) {
	if arm.Squares(rows, columns).Terms == terms {
		return false, true
	}
	return true, arm.Squares(columns, rows).Terms == terms
}

// sums is an operand of four sums in a register.
func sums(name string) ir.Param {
	return ir.Param{Name: name, Use: ir.Update, In: ir.Register, Lanes: SquareLanes, Form: ir.Variable}
}

// Squares returns the rearrangement of two vectors of SquareLanes sums, from one row each to one square each, with the
// sums of both rows and of two columns, or back. Turned squares are column-major. The rearrangement is its own inverse
// for squares stored row by row.
func Squares(d array.DType, turned, back bool) *ir.Instruction {
	name, first, second := "rows.to.squares", "0, 1, 4, 5", "2, 3, 6, 7"
	switch {
	case turned && back:
		first, second = "0, 2, 4, 6", "1, 3, 5, 7"
	case turned:
		first, second = "0, 4, 1, 5", "2, 6, 3, 7"
	}
	if back {
		name = "squares.to.rows"
	}
	if turned {
		name += ".turned"
	}
	return &ir.Instruction{
		Name: name, Params: []ir.Param{sums("first"), sums("second")},
		Text: fmt.Sprintf("{ const %[1]s t = __builtin_shufflevector(%%[1]s, %%[2]s, %[2]s); %%[2]s = __builtin_shufflevector(%%[1]s, %%[2]s, %[3]s); %%[1]s = t; }",
			cprint.VectorName(d, SquareLanes), first, second),
		Prelude: &ir.Prelude{Vectors: []ir.Vectors{{Type: d, Lanes: SquareLanes}}},
	}
}

// SquareProduct returns the instruction that adds to two squares of sums the products of the terms of two rows and of
// four columns: the best one that a target has, or plain code. Its operands are the squares, two registers that repeat
// the terms of one row each, and one that holds the columns one after the other.
func SquareProduct(rows, columns array.DType, turned bool) *ir.Instruction {
	name, a, b, form := fmt.Sprintf("tilth_squares_%v_%v", rows, columns), "rows", "pair", arm.Squares(rows, columns)
	if turned {
		a, b, form = "pair", "rows", arm.Squares(columns, rows)
	}
	sum, plain := array.Int32, plainSquare(a, b, form.Terms)
	if rows.IsFloat() {
		sum, plain = array.Float32, plainSquareBF16(a, b)
	}
	code := fmt.Sprintf("  %s pair = __builtin_shufflevector(columns, columns, %s);\n", cprint.VectorName(columns, 2*form.Terms), cprint.Indices(0, 2*form.Terms)) +
		squareCode(form, a, b, "first", plain) +
		fmt.Sprintf("  pair = __builtin_shufflevector(columns, columns, %s);\n", cprint.Indices(2*form.Terms, 2*form.Terms)) +
		squareCode(form, a, b, "second", plain)
	vectors := []ir.Vectors{
		{Type: columns, Lanes: 2 * form.Terms}, {Type: sum, Lanes: SquareLanes}, {Type: rows, Lanes: SquareLanes * form.Terms}, {Type: array.Uint32, Lanes: SquareLanes},
		{Type: columns, Lanes: SquareLanes * form.Terms}, {Type: rows, Lanes: 2 * form.Terms},
	}
	acc, row := cprint.VectorName(sum, SquareLanes), cprint.VectorName(rows, SquareLanes*form.Terms)
	code = strings.NewReplacer("{acc}", acc, "{bits}", cprint.VectorName(array.Uint32, SquareLanes)).Replace(code)
	register := func(name string) ir.Param {
		return ir.Param{Name: name, Use: ir.Read, In: ir.Register, Lanes: SquareLanes * form.Terms, Form: ir.Variable}
	}
	return &ir.Instruction{
		Name:   strings.ReplaceAll(strings.TrimPrefix(name, "tilth_"), "_", "."),
		Params: []ir.Param{sums("first"), sums("second"), register("one"), register("other"), register("columns")},
		Text:   name + "(&%s, &%s, %s, %s, %s);",
		Prelude: &ir.Prelude{Name: name, Vectors: vectors, Text: fmt.Sprintf(`static inline __attribute__((unused, always_inline)) void %s(%[2]s *first, %[2]s *second, %[3]s one, %[3]s other, %[4]s columns) {
  const %[5]s rows = __builtin_shufflevector(one, other, %[6]s, %[7]s);
%[8]s}
`, name, acc, row, cprint.VectorName(columns, SquareLanes*form.Terms), cprint.VectorName(rows, 2*form.Terms), cprint.Indices(0, form.Terms),
			cprint.Indices(SquareLanes*form.Terms, form.Terms), code)},
	}
}

// squareCode returns the instruction for operands a and b, with plain code as the alternative.
func squareCode(f arm.Square, a, b, square, plain string) string {
	return fmt.Sprintf(`#if defined(%[1]s)
  __asm__("%[2]s %%0.4s, %%1.%[3]s, %%2.%[3]s" : "+w"(*%[4]s) : "w"(%[5]s), "w"(%[6]s));
#else
%[7]s#endif
`, f.Macro, f.Name, f.Elements, square, a, b, strings.ReplaceAll(plain, "{square}", square))
}

// plainSquare returns portable code for the instructions: it extracts, multiplies and adds each term of both rows and
// columns.
func plainSquare(a, b string, terms int64) (text string) {
	for k := range terms {
		wide := func(x string, at ...int64) string {
			return fmt.Sprintf("({bits})__builtin_convertvector(__builtin_shufflevector(%s, %s, %s), {acc})", x, x, cprint.List(at))
		}
		text += fmt.Sprintf("  *{square} = ({acc})(({bits})*{square} + %s * %s);\n", wide(a, k, k, terms+k, terms+k), wide(b, k, terms+k, k, terms+k))
	}
	return text
}

// plainSquareBF16 does the same for pairs of bfloat16.
func plainSquareBF16(a, b string) (text string) {
	for _, pair := range [2][2]string{{"0, 0, 2, 2", "0, 2, 0, 2"}, {"1, 1, 3, 3", "1, 3, 1, 3"}} {
		text += plainPair("*{square}", fmt.Sprintf("__builtin_shufflevector(({bits})%[1]s, ({bits})%[1]s, %[2]s)", a, pair[0]),
			fmt.Sprintf("__builtin_shufflevector(({bits})%[1]s, ({bits})%[1]s, %[2]s)", b, pair[1]))
	}
	return text
}
