package codegen

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
)

// forms lists the operators that C or a helper function provides on vectors.
type forms struct{}

// Has reports whether an operator has a vector form.
func (f forms) Has(e expr.Expr, lane *expr.Var) bool {
	if n, ok := e.(*expr.Select); ok { // a side may be computed only where it is chosen
		return harmless(n.A) && harmless(n.B) && f.hasMask(n.Cond, lane)
	}
	if e.DType() == array.Bool {
		return f.hasMask(e, lane)
	}
	switch n := e.(type) {
	case *expr.Binary:
		return hasVectorBinary(n)
	case *expr.Unary:
		return hasVectorUnary(n)
	case *expr.Cast, *ir.Lookup:
		return true
	}
	return false
}

func hasVectorBinary(n *expr.Binary) bool {
	d := n.A.DType()
	switch n.Op {
	case expr.Add, expr.Sub, expr.Mul, expr.And, expr.Or, expr.Xor, expr.Min, expr.Max:
		return true
	case expr.Div, expr.Pow:
		return d.IsFloat()
	case expr.ShiftRight:
		by, ok := n.B.(*expr.Int)
		return ok && by.Value >= 0 && by.Value < 8*d.Bytes()
	}
	return false
}

func hasVectorUnary(n *expr.Unary) bool {
	switch n.Op {
	case expr.Neg, expr.Not:
		return true
	case expr.Rsqrt:
		return n.A.DType().IsFloat()
	}
	return n.A.DType().IsFloat() && lanewiseBuiltins[n.Op.String()] != ""
}

// hasMask reports whether a condition can be computed as a mask. Other conditions are computed lane by lane, as Bool.
func (f forms) hasMask(cond expr.Expr, lane *expr.Var) bool {
	if !expr.Uses(cond, lane) {
		return true
	}
	switch n := cond.(type) {
	case *expr.Binary:
		if n.A.DType() != array.Bool {
			return n.Op.IsComparison()
		}
		// The right side of And and Or may be read only where the left side permits it.
		return logicalFormats[n.Op] != "" && harmless(n.B) && f.hasMask(n.A, lane) && f.hasMask(n.B, lane)
	case *expr.Unary:
		return n.Op == expr.Not && f.hasMask(n.A, lane) || n.Op == expr.IsNaN || n.Op == expr.IsInf
	}
	return true
}

// harmless reports whether an expression may be computed speculatively: its loads stay inside their buffers for all
// values of the variables.
func harmless(e expr.Expr) bool {
	for _, l := range expr.Loads(e) {
		lo, hi, ok := expr.Linearize(l.Index[0]).Bounds()
		if !ok || lo < 0 || hi >= array.Elements(l.Tensor.Shape) {
			return false
		}
	}
	return true
}

var _ pass.LaneForms = forms{}
