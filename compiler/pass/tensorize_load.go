package pass

import (
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
func (p *tensorizeProduct) loadMatrices(o tensorizeOperand, to *ir.Buffer, registers int64) ir.Block {
	from, format, v := p.in[o.tensor], p.terms.Format, warpVarsOf(p.match)
	turned := !o.moves(v.term, 1)
	if from == nil || from.Space != ir.Shared || from.Row > 0 || format.Packed() == 1 || !format.Holds(o.tensor.DType) || turned && !o.linesAdjoin(v) {
		return nil
	}
	count, index, place, at := registers, o.index.Expr(), iteration(o.loops), p.step()
	// One register of a line holds half of an instruction's terms, and the next one the other half.
	at[v.half] = remainder(p.octet, 2)
	switch {
	case registers == registersA:
		at[v.below], at[v.half] = remainder(p.octet, 2), quotient(p.octet, 2)
	case len(o.loops) > 0 && o.loops[len(o.loops)-1].Extent%2 == 0: // an even number of matrices
		count *= 2
		o, index, place = o.byTwo(quotient(p.octet, 2))
	}
	line, term := expr.Expr(p.row), expr.I(0)
	if turned {
		line, term = term, line
	}
	at[v.group], at[v.term], at[p.threads.rest] = quotient(term, format.Packed()), remainder(term, format.Packed()), p.number
	at[v.row], at[v.quad], at[v.next] = line, quotient(line, 2), remainder(line, 2)
	row := linear(index, at)
	if !multiple(row, nvidia.MatrixRowBytes/o.tensor.DType.Bytes()) {
		return nil
	}
	load := ir.Exec(nvidia.LoadMatrices(count, turned), ir.At(to, expr.Linearize(place).Scale(registers).Expr()), ir.At(from, row.Expr()))
	return around(o.loops, ir.Block{load})
}

// moves reports whether each step of a loop moves the operand by the given number of elements.
func (o tensorizeOperand) moves(v *expr.Var, by int64) bool {
	apart, linear := o.index.Coef(v)
	return linear && apart == by
}

// linesAdjoin reports whether the eight lines of a matrix of 16-bit elements are contiguous.
func (o tensorizeOperand) linesAdjoin(v warpVars) bool {
	return o.tensor.DType.Bytes() == 2 && (o.moves(v.row, 1) || o.moves(v.quad, 2) && o.moves(v.next, 1))
}

// byTwo returns the operand with an innermost loop over pairs of matrices, its index in one of the pair, and the
// number of the first one.
func (o tensorizeOperand) byTwo(which expr.Expr) (pairs tensorizeOperand, index, first expr.Expr) {
	last := len(o.loops) - 1
	n := *o.loops[last]
	v := n.Var
	n.Extent /= 2
	n.Var = &expr.Var{Name: v.Name, Extent: n.Extent}
	even := expr.MulE(n.Var, expr.I(2))
	index = expr.Substitute(o.index.Expr(), map[*expr.Var]expr.Expr{v: expr.AddE(even, which)})
	first = expr.Substitute(iteration(o.loops), map[*expr.Var]expr.Expr{v: even})
	return tensorizeOperand{matched: o.matched, loops: append(slices.Clone(o.loops[:last]), &n)}, index, first
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
