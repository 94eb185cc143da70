package pass

import (
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// matrixRows is how many rows of 16 bytes a matrix has that a warp loads at once.
const matrixRows = 8

// loadMatrices loads an operand's registers as matrices of rows in shared memory, of which each thread names one; nil
// where they have no rows of 16 bytes that begin at multiples of 16. Rows are lines of the operand, or terms: then
// matrices are turned.
func (p *tensorizeProduct) loadMatrices(o tensorizeOperand, to *ir.Buffer, registers int64, first expr.Expr) ir.Block {
	from, format := p.shared[o.load.Tensor], p.terms.Format
	turned := !p.termsAdjoin(o)
	if from == nil || from.Row > 0 || format.Packed() == 1 || !format.Holds(o.load.DType()) || turned && !p.linesAdjoin(o, registers) {
		return nil
	}
	n := &ir.LoadMatrices{To: to, From: from, Count: registers, Turned: turned}
	index, place := o.load.Index[0], o.place()
	at := map[*expr.Var]expr.Expr{}
	// Half of the terms of an instruction are those of one register of a line, the others those of its next one.
	half := remainder(p.octet, 2)
	switch {
	case registers == registersA:
		at[p.half], half = half, quotient(p.octet, 2)
	case o.even():
		n.Count *= 2
		o, index, place = o.byTwo(quotient(p.octet, 2))
	}
	line, term := expr.Expr(p.row), expr.AddE(first, expr.MulE(half, expr.I(n.RowElements())))
	if turned {
		line, term = expr.I(0), expr.AddE(term, p.row)
	}
	at[p.terms.Var] = term
	maps.Copy(at, p.line(registers, line))
	row := linear(index, at)
	if !multiple(row, n.RowElements()) {
		return nil
	}
	n.FromIndex, n.ToIndex = row.Expr(), expr.Linearize(place).Scale(registers).Expr()
	return around(o.loops, ir.Block{n})
}

// termsAdjoin reports whether terms of an operand lie side by side.
func (p *tensorizeProduct) termsAdjoin(o tensorizeOperand) bool {
	coef, linear := expr.Linearize(o.load.Index[0]).Coef(p.terms.Var)
	return linear && coef == 1
}

// linesAdjoin reports whether the eight lines of a matrix, of elements of 16 bits, lie side by side.
func (p *tensorizeProduct) linesAdjoin(o tensorizeOperand, registers int64) bool {
	at := func(n int64) expr.Linear { return linear(o.load.Index[0], p.line(registers, expr.I(n))) }
	for n := range int64(matrixRows) {
		if apart := at(n).Plus(at(0), -1); len(apart.Terms) > 0 || apart.Const != n {
			return false
		}
	}
	return o.load.DType().Bytes() == 2
}

// line has the values of variables with which an operand's index is that of a line of the eight of a matrix.
func (p *tensorizeProduct) line(registers int64, n expr.Expr) map[*expr.Var]expr.Expr {
	first := expr.MulE(p.number, expr.I(tensorizeWarpThreads))
	if p.loop.Extent == tensorizeWarpThreads {
		first = expr.I(0)
	}
	if registers == registersA {
		return map[*expr.Var]expr.Expr{p.loop.Var: expr.AddE(first, expr.MulE(n, expr.I(4)))}
	}
	return map[*expr.Var]expr.Expr{p.loop.Var: expr.AddE(first, quotient(n, 2)), p.pair: remainder(n, 2)}
}

// even reports whether the operand's innermost loop is over an even number of matrices.
func (o tensorizeOperand) even() bool {
	return len(o.loops) > 0 && o.loops[len(o.loops)-1].Extent%2 == 0
}

// byTwo is the operand with an innermost loop over pairs of matrices, with its index in one of the two and the number
// of the first one.
func (o tensorizeOperand) byTwo(which expr.Expr) (pairs tensorizeOperand, index, place expr.Expr) {
	last := len(o.loops) - 1
	n := *o.loops[last]
	v := n.Var
	n.Extent /= 2
	n.Var = &expr.Var{Name: v.Name, Extent: n.Extent}
	first := expr.MulE(n.Var, expr.I(2))
	index = expr.Substitute(o.load.Index[0], map[*expr.Var]expr.Expr{v: expr.AddE(first, which)})
	place = expr.Substitute(o.place(), map[*expr.Var]expr.Expr{v: first})
	return tensorizeOperand{load: o.load, loops: append(slices.Clone(o.loops[:last]), &n)}, index, place
}

// linear is an index with values for variables.
func linear(index expr.Expr, at map[*expr.Var]expr.Expr) expr.Linear {
	return expr.Linearize(expr.Simplify(expr.Substitute(index, at)))
}

// multiple reports whether an index is a multiple of a number whatever the values of its variables.
func multiple(index expr.Linear, of int64) bool {
	return index.Const%of == 0 && !slices.ContainsFunc(index.Terms, func(t expr.Term) bool { return t.Coef%of != 0 })
}

func quotient(e expr.Expr, by int64) expr.Expr  { return expr.Bin(expr.FloorDiv, e, expr.I(by)) }
func remainder(e expr.Expr, by int64) expr.Expr { return expr.Bin(expr.FloorMod, e, expr.I(by)) }
