package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// tilesProduct is a loop over matrices that tile instructions compute.
type tilesProduct struct {
	format schedule.Format
	// rows holds the extents of the loops over rows of sums, outermost first, and columns that of the loop over
	// columns.
	rows    []int64
	columns int64
	a, b    tilesOperand
}

// tilesOperand is one of the factors.
type tilesOperand struct {
	load *expr.Load
	// first is the index of the first term, row and column.
	first expr.Linear
	// steps holds the stride between rows of sums for each row loop.
	steps []int64
	// rowElements is the stride between rows of a tile.
	rowElements int64
}

// tilesMatch matches a loop over matrices; either factor may supply the rows.
func tilesMatch(n *ir.For, sums *ir.Buffer) (*tilesProduct, bool) {
	loops, store := ir.StepNest(n.Body)
	if store == nil || store.Buffer.Tensor != sums.Tensor || n.Extent != n.Format.Terms() || n.Range != nil {
		return nil, false
	}
	op, term, ok := store.Step()
	if !ok || op != expr.Add || expr.Uses(store.Index, n.Var) {
		return nil, false
	}
	x, y, ok := schedule.Factors(term)
	if !ok || !n.Format.Holds(x.DType()) || !n.Format.Holds(y.DType()) || sums.Tensor.DType != n.Format.Sum() {
		return nil, false
	}
	for _, f := range [][2]*expr.Load{{x, y}, {y, x}} {
		p := &tilesProduct{format: n.Format, columns: 1, a: tilesOperand{load: f[0]}, b: tilesOperand{load: f[1]}}
		if p.divide(n, loops, expr.Linearize(store.Index)) {
			return p, true
		}
	}
	return nil, false
}

// divide assigns each loop to rows or columns, and checks that the terms have a tile's layout.
func (p *tilesProduct) divide(n *ir.For, loops []*ir.For, sums expr.Linear) bool {
	packed := p.format.Packed()
	group, within := &expr.Var{Name: "g", Extent: n.Extent / packed}, &expr.Var{Name: "t", Extent: packed}
	term := map[*expr.Var]expr.Expr{n.Var: expr.AddE(expr.MulE(group, expr.I(packed)), within)}
	place := func(l *expr.Load) expr.Linear {
		return regrouped(expr.Linearize(expr.Simplify(expr.Substitute(l.Index[0], term))))
	}
	a, b := place(p.a.load), place(p.b.load)
	// A sum is followed by those of the next columns, and these by those of the next rows.
	behind := int64(1)
	for _, loop := range slices.Backward(loops) {
		ofA, ofB, of := take(&a, loop.Var), take(&b, loop.Var), take(&sums, loop.Var)
		switch {
		case ofA == 0 && ofB == packed && of == 1 && behind == 1:
			p.columns = loop.Extent
		case ofA > 0 && ofB == 0 && of == behind:
			p.rows, p.a.steps = append([]int64{loop.Extent}, p.rows...), append([]int64{ofA}, p.a.steps...)
		default:
			return false
		}
		behind *= loop.Extent
	}
	if len(p.rows) == 0 {
		p.rows, p.a.steps = []int64{1}, []int64{0}
	}
	p.a.rowElements = p.a.steps[len(p.a.steps)-1]
	p.b.rowElements = take(&b, group)
	fits := take(&a, group) == packed && take(&a, within) == 1 && take(&b, within) == 1 && p.b.rowElements > 0
	p.a.first, p.b.first = a, b
	return fits && len(sums.Terms) == 0 && sums.Const == 0
}

// take removes the term of a variable from a sum and returns its coefficient, or -1 if other terms use it, too.
func take(l *expr.Linear, v *expr.Var) int64 {
	coef, linear := l.Coef(v)
	if !linear {
		return -1
	}
	*l = l.Plus(expr.Linearize(v), -coef)
	return coef
}

// same reports whether two products have sums of the same shape.
func (p *tilesProduct) same(q *tilesProduct) bool {
	return p.format == q.format && slices.Equal(p.rows, q.rows) && p.columns == q.columns
}
