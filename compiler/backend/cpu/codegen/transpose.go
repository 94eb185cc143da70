package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// mostTransposed bounds the lanes of a square: compilers take seconds for the shuffles of vectors of many bytes.
const mostTransposed = 16

// transposition is a square of elements that is copied with its rows and columns exchanged, as many as a vector has
// lanes: copies that collect their lanes from elements far apart, each the neighbours of what the one before collects.
type transposition struct {
	from, to *expr.Tensor
	lanes    int64
	// first is the index of the square's first element, step how far its rows lie apart; columns are the indices
	// stored to.
	first   expr.Linear
	step    int64
	columns []expr.Linear
}

// copied is one vector of lanes that are copied from memory to memory.
type copied struct {
	load, store expr.Linear // of the first lane
	step        int64
	from, to    *expr.Tensor
	lanes       int64
}

// transposed finds a transposition at the beginning of a block; nil when there is none.
func (p *printer) transposed(b ir.Block) *transposition {
	var t *transposition
	for k, st := range b {
		c, ok := p.copied(st)
		if !ok || c.step < 2 || c.lanes < 2 || c.lanes > mostTransposed {
			return nil
		}
		if t == nil {
			t = &transposition{from: c.from, to: c.to, lanes: c.lanes, first: c.load, step: c.step}
		}
		next := c.load.Plus(t.first, -1)
		if c.from != t.from || c.to != t.to || c.lanes != t.lanes || c.step != t.step || len(next.Terms) > 0 || next.Const != int64(k) {
			return nil
		}
		if t.columns = append(t.columns, c.store); int64(len(t.columns)) == t.lanes {
			return t
		}
	}
	return nil
}

func (p *printer) copied(st ir.Stmt) (c copied, ok bool) {
	n, ok := st.(*ir.For)
	if !ok || n.Kind != ir.Vector || len(n.Body) != 1 {
		return c, false
	}
	s, ok := n.Body[0].(*ir.Store)
	if !ok {
		return c, false
	}
	l, ok := s.Value.(*expr.Load)
	if !ok || l.Tensor == s.Buffer.Tensor || p.registers[l.Tensor] != nil || p.registers[s.Buffer.Tensor] != nil {
		return c, false
	}
	lane := expr.Linearize(n.Var)
	from, to := expr.Linearize(l.Index[0]), expr.Linearize(s.Index)
	step, linear := from.Coef(n.Var)
	one, linearStore := to.Coef(n.Var)
	c = copied{from.Plus(lane, -step), to.Plus(lane, -1), step, l.Tensor, s.Buffer.Tensor, n.Extent}
	return c, linear && linearStore && one == 1
}

// transpose prints it: rows are loaded, exchanged in registers in as many rounds as the number of lanes has bits, and
// stored as columns.
func (p *printer) transpose(t *transposition) {
	v := p.unit.vector(t.from.DType, t.lanes)
	rows := make([]string, t.lanes)
	for k := range rows {
		at := t.first
		at.Const += int64(k) * t.step
		rows[k] = p.kernel.fresh("r")
		p.line("%s %s = *(const %s_mem *)&%s;", v, rows[k], v, p.element(t.from, at))
	}
	for width := 1; width < len(rows); width *= 2 {
		p.exchange(v, rows, width)
	}
	for k, at := range t.columns {
		p.line("*(%s_mem *)&%s = %s;", v, p.element(t.to, at), rows[k])
	}
	p.stored(t.to)
}

// exchange prints one round: of rows that lie width apart, blocks of width lanes change sides.
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
