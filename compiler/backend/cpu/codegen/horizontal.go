package codegen

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// horizontal prints the vectorized step of a reduction, x = x op term with one x for all lanes, as a combination of
// the term's lanes; false when the store is no such step.
func (p *printer) horizontal(n *ir.Store) bool {
	step, ok := n.Value.(*expr.Binary)
	d := n.Buffer.Tensor.DType
	if !ok || !computes(d) || expr.Uses(n.Index, p.lane) || !isStepOf(step, n) || expr.Uses(step.A, p.lane) {
		return false
	}
	if _, ok := acrossOps[step.Op.String()]; !ok {
		return false
	}
	term := p.vector(step.B)
	lane, lanes := p.lane, p.lanes
	p.lane, p.lanes = nil, 1
	defer func() { p.lane, p.lanes = lane, lanes }()
	value := p.unit.binary(step.Op, d, p.scalar(step.A), fmt.Sprintf("%s(%s)", p.unit.helper("across_"+step.Op.String(), d, lanes), term))
	at := expr.Linearize(n.Index)
	if reg := p.registers[n.Buffer.Tensor]; reg != nil {
		p.line("%s = %s;", reg.lane(at.Const), value)
		return true
	}
	p.line("%s = %s;", p.element(n.Buffer.Tensor, at), value)
	p.stored(n.Buffer.Tensor)
	return true
}

// isStepOf reports whether the left side of a value is what the store overwrites.
func isStepOf(step *expr.Binary, n *ir.Store) bool {
	l, ok := step.A.(*expr.Load)
	return ok && l.Tensor == n.Buffer.Tensor && expr.Same(l.Index[0], n.Index)
}

// acrossOps are the operators that combine lanes.
var acrossOps = map[string]expr.BinaryOp{"add": expr.Add, "mul": expr.Mul, "min": expr.Min, "max": expr.Max}

// across declares the combination of a vector's lanes: halves are combined until two lanes are left.
func (u *Unit) across(head, name, op string, d array.DType, lanes int64) {
	t, scalar := u.vector(d, lanes), ctypes[d].scalar
	if lanes == 2 {
		u.declarations.declare(name, fmt.Sprintf("%s%s %s(%s x) { return %s; }\n", head, scalar, name, t, u.binary(acrossOps[op], d, "x[0]", "x[1]")))
		return
	}
	half := lanes / 2
	inner := u.helper("across_"+op, d, half)
	low := fmt.Sprintf("__builtin_shufflevector(x, x, %s)", indices(0, half))
	high := fmt.Sprintf("__builtin_shufflevector(x, x, %s)", indices(half, half))
	combined := fmt.Sprintf("(%s %s %s)", low, infix[acrossOps[op]], high)
	if op == "min" || op == "max" {
		combined = fmt.Sprintf("%s(%s, %s)", u.extremeHelper(acrossOps[op], d, half), low, high)
	}
	u.declarations.declare(name, fmt.Sprintf("%s%s %s(%s x) { return %s(%s); }\n", head, scalar, name, t, inner, combined))
}

// indices lists n numbers from a first one.
func indices(first, n int64) string {
	list := fmt.Sprint(first)
	for k := first + 1; k < first+n; k++ {
		list += fmt.Sprintf(", %d", k)
	}
	return list
}
