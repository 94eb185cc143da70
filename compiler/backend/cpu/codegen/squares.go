package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// squareTypes are the operand types of an instruction that adds the products of two rows by two columns to the four
// sums of a square. Its first operand holds the rows; sums of a row are adjacent.
type squareTypes struct{ a, b array.DType }

// squareForm is the instruction, with its number of terms per row and column, the macro that announces it, and the
// element name in assembler syntax.
type squareForm struct {
	terms             int64
	name, macro, kind string
}

// squareInstructions holds the instructions of arm64. They neither round integers nor saturate. Those of bfloat16 add
// two pairs in sequence. Most cores only have the older rules for this, as for bfdot: the sum of a pair is rounded to
// odd before it is added and rounded again, and denormal numbers are flushed to zero.
var squareInstructions = map[squareTypes]squareForm{
	{array.Int8, array.Int8}:         {8, "smmla", "__ARM_FEATURE_MATMUL_INT8", "16b"},
	{array.Uint8, array.Uint8}:       {8, "ummla", "__ARM_FEATURE_MATMUL_INT8", "16b"},
	{array.Uint8, array.Int8}:        {8, "usmmla", "__ARM_FEATURE_MATMUL_INT8", "16b"},
	{array.BFloat16, array.BFloat16}: {4, "bfmmla", "__ARM_FEATURE_BF16_VECTOR_ARITHMETIC", "8h"},
}

// hasSquares reports whether an instruction exists for that many terms of rows and columns of these types. turned is
// set if its first operand holds the columns.
func hasSquares(rows, columns array.DType, terms int64) (turned, ok bool) {
	if squareInstructions[squareTypes{rows, columns}].terms == terms {
		return false, true
	}
	return true, squareInstructions[squareTypes{columns, rows}].terms == terms
}

// squares prints the exchange of lanes between two vectors. It is its own inverse for squares stored row by row.
func (p *printer) squares(n *ir.Squares) {
	first, second := []int64{0, 1, 4, 5}, []int64{2, 3, 6, 7}
	switch {
	case n.Turned && n.Back:
		first, second = []int64{0, 2, 4, 6}, []int64{1, 3, 5, 7}
	case n.Turned:
		first, second = []int64{0, 4, 1, 5}, []int64{2, 6, 3, 7}
	}
	a, b := p.squaresOf(n.Sums, n.At)
	kept := p.kernel.fresh("t")
	p.line("const %s %s = __builtin_shufflevector(%s, %s, %s);", p.unit.vector(n.Sums.Tensor.DType, ir.SquareLanes), kept, a, b, listed(first))
	p.line("%s = __builtin_shufflevector(%s, %s, %s);", b, a, b, listed(second))
	p.line("%s = %s;", a, kept)
}

// squareProduct prints the products of both rows by all four columns.
func (p *printer) squareProduct(n *ir.SquareProduct) {
	first, second := p.squaresOf(n.Sums, n.At)
	name := func(b *ir.Buffer) string { return p.registers[b.Tensor].name }
	helper := p.unit.squareHelper(n.Rows[0].Tensor.DType, n.Columns.Tensor.DType, n.Turned)
	p.line("%s(&%s, &%s, %s, %s, %s);", helper, first, second, name(n.Rows[0]), name(n.Rows[1]), name(n.Columns))
}

// squaresOf returns the variables of two squares.
func (p *printer) squaresOf(sums *ir.Buffer, at [2]int64) (first, second string) {
	reg := p.registers[sums.Tensor]
	return reg.vector(at[0], ir.SquareLanes), reg.vector(at[1], ir.SquareLanes)
}

// squareHelper declares the function that adds products to two squares, with the best instruction available: two
// rows, each repeated, by four columns. turned is set if the columns are the instruction's first operand.
func (u *Unit) squareHelper(rows, columns array.DType, turned bool) string {
	name := fmt.Sprintf("tilth_squares_%v_%v", rows, columns)
	if u.declarations.Has(name) {
		return name
	}
	types, a, b := squareTypes{rows, columns}, "rows", "pair"
	if turned {
		types, a, b = squareTypes{columns, rows}, "pair", "rows"
	}
	form, sum := squareInstructions[types], array.Int32
	plain := plainSquare(a, b, form.terms)
	if rows.IsFloat() {
		sum, plain = array.Float32, plainSquareBF16(a, b)
	}
	code := fmt.Sprintf("  %s pair = __builtin_shufflevector(columns, columns, %s);\n", u.vector(columns, 2*form.terms), indices(0, 2*form.terms)) +
		form.instruction(a, b, "first", plain) +
		fmt.Sprintf("  pair = __builtin_shufflevector(columns, columns, %s);\n", indices(2*form.terms, 2*form.terms)) +
		form.instruction(a, b, "second", plain)
	acc, row := u.vector(sum, ir.SquareLanes), u.vector(rows, ir.SquareLanes*form.terms)
	code = strings.NewReplacer("{acc}", acc, "{bits}", u.vector(array.Uint32, ir.SquareLanes)).Replace(code)
	u.declarations.Declare(name, fmt.Sprintf(`static inline __attribute__((unused, always_inline)) void %s(%[2]s *first, %[2]s *second, %[3]s one, %[3]s other, %[4]s columns) {
  const %[5]s rows = __builtin_shufflevector(one, other, %[6]s, %[7]s);
%[8]s}
`, name, acc, row, u.vector(columns, ir.SquareLanes*form.terms), u.vector(rows, 2*form.terms), indices(0, form.terms), indices(ir.SquareLanes*form.terms, form.terms), code))
	return name
}

// instruction returns the instruction for operands a and b, with plain code as the alternative.
func (f squareForm) instruction(a, b, square, plain string) string {
	return fmt.Sprintf(`#if defined(%[1]s)
  __asm__("%[2]s %%0.4s, %%1.%[3]s, %%2.%[3]s" : "+w"(*%[4]s) : "w"(%[5]s), "w"(%[6]s));
#else
%[7]s#endif
`, f.macro, f.name, f.kind, square, a, b, strings.ReplaceAll(plain, "{square}", square))
}

// plainSquare returns portable code for the instructions: it extracts, multiplies and adds each term of both rows and
// columns.
func plainSquare(a, b string, terms int64) (text string) {
	for k := range terms {
		wide := func(x string, at ...int64) string {
			return fmt.Sprintf("({bits})__builtin_convertvector(__builtin_shufflevector(%s, %s, %s), {acc})", x, x, listed(at))
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
