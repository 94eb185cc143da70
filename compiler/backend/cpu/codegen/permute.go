package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// transpose prints the transposition of a square. Rows are loaded, exchanged in registers in log2(lanes) rounds, and
// stored as columns.
func (p *printer) transpose(t *ir.Transpose) {
	v := p.unit.vector(t.From.DType, int64(len(t.Columns)))
	rows := make([]string, len(t.Columns))
	for k := range rows {
		at := t.First
		at.Const += int64(k) * t.RowElements
		rows[k] = p.kernel.fresh("r")
		p.line("%s %s = *(const %s_mem *)&%s;", v, rows[k], v, p.element(t.From, at))
	}
	for width := 1; width < len(rows); width *= 2 {
		p.exchange(v, rows, width)
	}
	for k, at := range t.Columns {
		p.line("*(%s_mem *)&%s = %s;", v, p.element(t.To.Tensor, at), rows[k])
	}
}

// exchange prints one round: rows at distance width exchange blocks of width lanes.
func (p *printer) exchange(v string, rows []string, width int) {
	var low, high []string
	for lane := range rows {
		if lane&width == 0 {
			low, high = append(low, fmt.Sprint(lane)), append(high, fmt.Sprint(lane+width))
		} else {
			low, high = append(low, fmt.Sprint(len(rows)+lane-width)), append(high, fmt.Sprint(len(rows)+lane))
		}
	}
	for k := range rows {
		if k&width != 0 {
			continue
		}
		a, b := rows[k], rows[k+width]
		rows[k], rows[k+width] = p.kernel.fresh("r"), p.kernel.fresh("r")
		p.line("const %s %s = __builtin_shufflevector(%s, %s, %s);", v, rows[k], a, b, strings.Join(low, ", "))
		p.line("const %s %s = __builtin_shufflevector(%s, %s, %s);", v, rows[k+width], a, b, strings.Join(high, ", "))
	}
}

// turnsHelper declares the function that interleaves four vectors: their first elements, then their second ones, and
// so on. For 16 bytes, one instruction permutes those of a
// single vector. The empty assembly keeps compilers from choosing the two-vector permutation, which takes several
// times as long on some processors.
func (u *Unit) turnsHelper(d array.DType, width int64, picks []int64) string {
	name := fmt.Sprintf("tilth_turns_%v_x%d", d, width)
	if u.declarations.Has(name) {
		return name
	}
	one, two, four := u.vector(d, width), u.vector(d, 2*width), u.vector(d, 4*width)
	body := fmt.Sprintf("  const %[1]s front = __builtin_shufflevector(a, b, %[2]s), back = __builtin_shufflevector(c, d, %[2]s);\n", two, listed(upTo(2*width)))
	plain := fmt.Sprintf("  return __builtin_shufflevector(front, back, %s);\n", listed(picks))
	if d.Bytes() == 1 && width == 16 {
		plain = fmt.Sprintf(`#if defined(__clang__) && defined(__AVX512VBMI__)
  typedef char bytes __attribute__((vector_size(64)));
  bytes all = (bytes)__builtin_shufflevector(front, back, %s);
  __asm__("" : "+v"(all));
  return (%s)__builtin_ia32_permvarqi512(all, (bytes){%s});
#else
%s#endif
`, listed(upTo(4*width)), four, listed(picks), plain)
	}
	u.declarations.Declare(name, fmt.Sprintf("static inline __attribute__((unused, always_inline)) %s %s(%[3]s a, %[3]s b, %[3]s c, %[3]s d) {\n%[4]s}\n", four, name, one, body+plain))
	return name
}

// upTo returns the numbers from zero to n-1.
func upTo(n int64) []int64 {
	list := make([]int64, n)
	for k := range list {
		list[k] = int64(k)
	}
	return list
}

// listed formats numbers as a C list.
func listed(numbers []int64) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ", ")
}
