package codegen

import (
	"fmt"
	"strings"

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
