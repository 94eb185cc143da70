package machine

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
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
	i := &ir.Instruction{
		Name: name, Params: []ir.Param{sums("first"), sums("second")},
		Text: fmt.Sprintf("{ const %[1]s t = __builtin_shufflevector(%%[1]s, %%[2]s, %[2]s); %%[2]s = __builtin_shufflevector(%%[1]s, %%[2]s, %[3]s); %%[1]s = t; }",
			cprint.VectorName(d, SquareLanes), first, second),
		Prelude: &ir.Prelude{Vectors: []ir.Vectors{{Type: d, Lanes: SquareLanes}}},
	}
	i.Meaning = ir.NewMeaning(i, func(f []ir.Formal) ir.Block { return rearrangement(f, d, turned, back) }, ir.Flat("first", d, SquareLanes), ir.Flat("second", d, SquareLanes))
	return i
}

// rearrangement exchanges rows, one after the other, and squares.
func rearrangement(f []ir.Formal, d array.DType, turned, back bool) ir.Block {
	all := &ir.Buffer{Tensor: ir.Flat("all", d, 2*SquareLanes), Space: ir.Scratch}
	lane := &expr.Var{Name: "lane", Extent: SquareLanes}
	row, column := &expr.Var{Name: "row", Extent: 2}, &expr.Var{Name: "column", Extent: 2}
	body := ir.Block{&ir.Alloc{Buffer: all}}
	for k, half := range f {
		body = append(body, ir.Nest(ir.Serial, ir.Block{&ir.Store{Buffer: all, Index: expr.AddE(lane, expr.I(int64(k)*SquareLanes)), Value: half.At(lane)}}, lane)...)
	}
	var stores ir.Block
	for k, half := range f { // two columns of both rows, or a row of both squares
		from, to := expr.AddE(column, expr.I(2*int64(k))), squareAt(row, column, turned)
		if back {
			from, to = squareAt(expr.I(int64(k)), column, turned), squareAt(row, column, false)
		}
		stores = append(stores, &ir.Store{Buffer: half.Buffer, Index: to, Value: all.Tensor.At(expr.AddE(expr.MulE(row, expr.I(SquareLanes)), from))})
	}
	return append(body, ir.Nest(ir.Serial, stores, row, column)...)
}

// squareAt returns the place of a sum in a square.
func squareAt(row, column expr.Expr, turned bool) expr.Expr {
	if turned {
		row, column = column, row
	}
	return expr.AddE(expr.MulE(row, expr.I(2)), column)
}

// SquareProduct returns the instruction that adds to two squares of sums the products of the terms of two rows and of
// four columns: the best one that a target has, or plain code. Its operands are the squares, two registers that repeat
// the terms of one row each, and one that holds the columns one after the other.
func SquareProduct(rows, columns array.DType, turned bool) *ir.Instruction {
	name, a, b, form, sum := fmt.Sprintf("tilth_squares_%v_%v", rows, columns), "rows", "pair", arm.Squares(rows, columns), array.Int32
	if turned {
		a, b, form = "pair", "rows", arm.Squares(columns, rows)
	}
	if rows.IsFloat() {
		sum = array.Float32
	}
	add := func(square string, from int64) string {
		return fmt.Sprintf("  pair = __builtin_shufflevector(columns, columns, %s);\n  __asm__(\"%s %%0.4s, %%1.%[3]s, %%2.%[3]s\" : \"+w\"(%s) : \"w\"(%s), \"w\"(%s));\n",
			cprint.Indices(from, 2*form.Terms), form.Name, form.Elements, square, a, b)
	}
	vectors := []ir.Vectors{
		{Type: columns, Lanes: 2 * form.Terms}, {Type: sum, Lanes: SquareLanes}, {Type: rows, Lanes: SquareLanes * form.Terms},
		{Type: columns, Lanes: SquareLanes * form.Terms}, {Type: rows, Lanes: 2 * form.Terms},
	}
	acc, row := cprint.VectorName(sum, SquareLanes), cprint.VectorName(rows, SquareLanes*form.Terms)
	register := func(name string) ir.Param {
		return ir.Param{Name: name, Use: ir.Read, In: ir.Register, Lanes: SquareLanes * form.Terms, Form: ir.Variable}
	}
	i := &ir.Instruction{
		Name:   strings.ReplaceAll(strings.TrimPrefix(name, "tilth_"), "_", "."),
		Params: []ir.Param{sums("first"), sums("second"), register("one"), register("other"), register("columns")},
		Text:   name + "(&%s, &%s, %s, %s, %s);",
		Prelude: &ir.Prelude{Name: name, Vectors: vectors, Text: fmt.Sprintf(`static inline __attribute__((unused, always_inline)) void %s(%[2]s *to_first, %[2]s *to_second, %[3]s one, %[3]s other, %[4]s columns) {
  %[2]s first = *to_first, second = *to_second;
#if defined(%[5]s)
  %[6]s pair;
  const %[7]s rows = __builtin_shufflevector(one, other, %[8]s, %[9]s);
%[10]s%[11]s#else
%[12]s#endif
  *to_first = first, *to_second = second;
}
`, name, acc, row, cprint.VectorName(columns, SquareLanes*form.Terms), form.Macro, cprint.VectorName(columns, 2*form.Terms), cprint.VectorName(rows, 2*form.Terms),
			cprint.Indices(0, form.Terms), cprint.Indices(SquareLanes*form.Terms, form.Terms), add("first", 0), add("second", 2*form.Terms), ir.Plain)},
	}
	elements := func(name string, d array.DType) *expr.Tensor { return ir.Flat(name, d, SquareLanes*form.Terms) }
	i.Meaning = ir.NewMeaning(i, func(f []ir.Formal) ir.Block { return squares(f, form.Terms, sum, turned) }, ir.Flat("first", sum, SquareLanes),
		ir.Flat("second", sum, SquareLanes), elements("one", rows), elements("other", rows), elements("columns", columns))
	return i
}

// squares adds the products of both rows with the columns of each square.
func squares(f []ir.Formal, terms int64, sum array.DType, turned bool) ir.Block {
	term, column := &expr.Var{Name: "k", Extent: terms}, &expr.Var{Name: "column", Extent: 2}
	var steps ir.Block
	for n, square := range f[:2] {
		at := expr.AddE(expr.MulE(expr.AddE(column, expr.I(2*int64(n))), expr.I(terms)), term)
		for m, row := range f[2:4] {
			product := expr.MulE(expr.To(sum, row.At(term)), expr.To(sum, f[4].At(at)))
			steps = append(steps, ir.Add(square.Buffer, squareAt(expr.I(int64(m)), column, turned), product))
		}
	}
	return ir.Nest(ir.Serial, steps, term, column)
}
