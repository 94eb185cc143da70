package pass

import (
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
)

// matrixRows is the number of 16-byte rows in a matrix that a warp loads at once.
const matrixRows = 8

// loadMatrices loads an operand's registers with matrix loads from shared memory, for which each thread supplies
// the address of a row. It returns nil unless the rows have 16 bytes and 16-byte alignment. If rows run over terms
// instead of lines, the loads transpose.
func (p *tensorizeProduct) loadMatrices(o tensorizeOperand, to *ir.Buffer, registers int64, first expr.Expr) ir.Block {
	from, format := p.in[o.load.Tensor], p.terms.Format
	turned := !p.termsAdjoin(o)
	if from == nil || from.Space != ir.Shared || from.Row > 0 || format.Packed() == 1 || !format.Holds(o.load.DType()) || turned && !p.linesAdjoin(o, registers) {
		return nil
	}
	count, rowElements := registers, nvidia.MatrixRowBytes/o.load.DType().Bytes()
	index, place := o.load.Index[0], o.place()
	at := map[*expr.Var]expr.Expr{}
	// One register of a line holds half of an instruction's terms, and the next one the other half.
	half := remainder(p.octet, 2)
	switch {
	case registers == registersA:
		at[p.half], half = half, quotient(p.octet, 2)
	case len(o.loops) > 0 && o.loops[len(o.loops)-1].Extent%2 == 0: // an even number of matrices
		count *= 2
		o, index, place = o.byTwo(quotient(p.octet, 2))
	}
	line, term := expr.Expr(p.row), expr.AddE(first, expr.MulE(half, expr.I(rowElements)))
	if turned {
		line, term = expr.I(0), expr.AddE(term, p.row)
	}
	at[p.terms.Var] = term
	maps.Copy(at, p.line(registers, line))
	row := linear(index, at)
	if !multiple(row, rowElements) {
		return nil
	}
	load := ir.Exec(nvidia.LoadMatrices(count, turned), ir.At(to, expr.Linearize(place).Scale(registers).Expr()), ir.At(from, row.Expr()))
	return around(o.loops, ir.Block{load})
}

// termsAdjoin reports whether the terms of an operand are contiguous.
func (p *tensorizeProduct) termsAdjoin(o tensorizeOperand) bool {
	coef, linear := expr.Linearize(o.load.Index[0]).Coef(p.terms.Var)
	return linear && coef == 1
}

// linesAdjoin reports whether the eight lines of a matrix of 16-bit elements are contiguous.
func (p *tensorizeProduct) linesAdjoin(o tensorizeOperand, registers int64) bool {
	at := func(n int64) expr.Linear { return linear(o.load.Index[0], p.line(registers, expr.I(n))) }
	for n := range int64(matrixRows) {
		if apart := at(n).Plus(at(0), -1); len(apart.Terms) > 0 || apart.Const != n {
			return false
		}
	}
	return o.load.DType().Bytes() == 2
}

// line returns the variable values for which the operand's index addresses line n of a matrix.
func (p *tensorizeProduct) line(registers int64, n expr.Expr) map[*expr.Var]expr.Expr {
	first := expr.MulE(p.number, expr.I(warpThreads))
	if p.loop.Extent == warpThreads {
		first = expr.I(0)
	}
	if registers == registersA {
		return map[*expr.Var]expr.Expr{p.loop.Var: expr.AddE(first, expr.MulE(n, expr.I(4)))}
	}
	return map[*expr.Var]expr.Expr{p.loop.Var: expr.AddE(first, quotient(n, 2)), p.pair: remainder(n, 2)}
}

// byTwo returns the operand with an innermost loop over pairs of matrices, its index in one of the pair, and the
// number of the first one.
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

// linear returns an index after substituting the given values.
func linear(index expr.Expr, at map[*expr.Var]expr.Expr) expr.Linear {
	return expr.Linearize(expr.Simplify(expr.Substitute(index, at)))
}

// multiple reports whether an index is a multiple of a number for all values of its variables.
func multiple(index expr.Linear, of int64) bool {
	return index.Const%of == 0 && !slices.ContainsFunc(index.Terms, func(t expr.Term) bool { return t.Coef%of != 0 })
}

func quotient(e expr.Expr, by int64) expr.Expr  { return expr.Bin(expr.FloorDiv, e, expr.I(by)) }
func remainder(e expr.Expr, by int64) expr.Expr { return expr.Bin(expr.FloorMod, e, expr.I(by)) }
