package machine

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Transpose returns the copy of a square of elements, of a power of two of lanes, with its rows and columns exchanged.
// Its operands are the rows, at their stride, and the place of each column, whose elements are contiguous. Rows are
// loaded, exchanged in registers in log2(lanes) rounds, and stored as columns.
func Transpose(d array.DType, lanes int) *ir.Instruction {
	v, scalar := cprint.VectorName(d, int64(lanes)), cprint.TypeOf(d).Scalar
	name := fmt.Sprintf("tilth_transpose_%vx%d", d, lanes)
	params := []ir.Param{{Name: "rows", Use: ir.Read, Form: ir.Strided}}
	x := &exchanger{vector: v}
	head := fmt.Sprintf("static inline __attribute__((unused, always_inline)) void %s(const %s *rows, int64_t apart", name, scalar)
	rows := make([]string, lanes)
	for k := range rows {
		params = append(params, ir.Param{Name: "column", Use: ir.Write, Form: ir.Address})
		head += fmt.Sprintf(", %s *to%d", scalar, k)
		rows[k] = x.define(fmt.Sprintf("*(const %s_mem *)(rows + %d * apart)", v, k))
	}
	for width := 1; width < lanes; width *= 2 {
		x.exchange(rows, width)
	}
	for k, row := range rows {
		fmt.Fprintf(&x.code, "  *(%s_mem *)to%d = %s;\n", v, k, row)
	}
	i := &ir.Instruction{
		Name: fmt.Sprintf("transpose.%vx%d", d, lanes), Params: params, Text: name + "(%s" + strings.Repeat(", %s", lanes) + ");",
		Prelude: &ir.Prelude{Name: name, Vectors: []ir.Vectors{{Type: d, Lanes: int64(lanes)}}, Text: head + ") {\n" + x.code.String() + "}\n"},
	}
	elements := make([]*expr.Tensor, lanes+1)
	for k := range elements {
		elements[k] = ir.Flat(params[k].Name, d, int64(lanes))
	}
	i.Meaning = ir.NewMeaning(i, transposition, elements...)
	return i
}

// transposition copies the rows' elements to each column.
func transposition(f []ir.Formal) (body ir.Block) {
	for k, column := range f[1:] {
		row := &expr.Var{Name: "row", Extent: column.Buffer.Elements()}
		from := f[0].At(f[0].Index(expr.I(0), row, expr.I(int64(k))))
		body = append(body, ir.Nest(ir.Vector, ir.Block{&ir.Store{Buffer: column.Buffer, Index: row, Value: from}}, row)...)
	}
	return body
}

// exchanger writes the code of a transposition.
type exchanger struct {
	vector string
	code   strings.Builder
	n      int
}

// define defines a vector and returns its name.
func (x *exchanger) define(value string) string {
	x.n++
	fmt.Fprintf(&x.code, "  const %s r%d = %s;\n", x.vector, x.n, value)
	return fmt.Sprintf("r%d", x.n)
}

// exchange writes one round: rows at distance width exchange blocks of width lanes.
func (x *exchanger) exchange(rows []string, width int) {
	var low, high []int64
	for lane := range rows {
		if lane&width == 0 {
			low, high = append(low, int64(lane)), append(high, int64(lane+width))
		} else {
			low, high = append(low, int64(len(rows)+lane-width)), append(high, int64(len(rows)+lane))
		}
	}
	for k := range rows {
		if k&width != 0 {
			continue
		}
		a, b := rows[k], rows[k+width]
		rows[k] = x.define(fmt.Sprintf("__builtin_shufflevector(%s, %s, %s)", a, b, cprint.List(low)))
		rows[k+width] = x.define(fmt.Sprintf("__builtin_shufflevector(%s, %s, %s)", a, b, cprint.List(high)))
	}
}
