package codegen

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// combine prints the reduction of a term's lanes into one element.
func (p *printer) combine(n *ir.Combine) {
	d := n.Buffer.Tensor.DType
	term := p.vector(n.Term)
	lane, lanes := p.lane, p.lanes
	p.lane, p.lanes = nil, 1
	defer func() { p.lane, p.lanes = lane, lanes }()
	element := p.scalar(n.Before)
	value := p.unit.helpers().Binary(n.Op, d, element, fmt.Sprintf("%s(%s)", p.unit.helper("across_"+n.Op.String(), d, lanes), term))
	at := expr.Linearize(n.Index)
	if reg := p.registers[n.Buffer.Tensor]; reg != nil {
		p.line("%s = %s;", reg.lane(at.Const), value)
		return
	}
	p.line("%s = %s;", p.element(n.Buffer.Tensor, at), value)
}

// acrossOps maps names to the operators that reduce lanes.
var acrossOps = map[string]expr.BinaryOp{"add": expr.Add, "mul": expr.Mul, "min": expr.Min, "max": expr.Max}

// across declares the reduction of a vector's lanes. It combines halves until two lanes are left.
func (u *Unit) across(head, name, op string, d array.DType, lanes int64) {
	t, scalar := u.vector(d, lanes), cprint.TypeOf(d).Scalar
	if lanes == 2 {
		u.declarations.Declare(name, fmt.Sprintf("%s%s %s(%s x) { return %s; }\n", head, scalar, name, t, u.helpers().Binary(acrossOps[op], d, "x[0]", "x[1]")))
		return
	}
	half := lanes / 2
	inner := u.helper("across_"+op, d, half)
	low := fmt.Sprintf("__builtin_shufflevector(x, x, %s)", indices(0, half))
	high := fmt.Sprintf("__builtin_shufflevector(x, x, %s)", indices(half, half))
	combined := fmt.Sprintf("(%s %s %s)", low, cprint.Infix[acrossOps[op]], high)
	if op == "min" || op == "max" {
		combined = fmt.Sprintf("%s(%s, %s)", u.extremeHelper(acrossOps[op], d, half), low, high)
	}
	u.declarations.Declare(name, fmt.Sprintf("%s%s %s(%s x) { return %s(%s); }\n", head, scalar, name, t, inner, combined))
}

// fold declares the sums of adjacent pairs of two vectors, or of one vector with twice the lanes, in order.
func (u *Unit) fold(head, name string, d array.DType, lanes int64, one bool) {
	t, of, parameters, arguments := u.vector(d, lanes), u.vector(d, lanes), "a, %s b", "a, b"
	if one {
		of, parameters, arguments = u.vector(d, 2*lanes), "a", "a, a"
	} else {
		parameters = fmt.Sprintf(parameters, t)
	}
	var even, odd []int64
	for k := range lanes {
		even, odd = append(even, 2*k), append(odd, 2*k+1)
	}
	u.declarations.Declare(name, fmt.Sprintf("%s%s %s(%s %s) { return __builtin_shufflevector(%s, %s) + __builtin_shufflevector(%s, %s); }\n",
		head, t, name, of, parameters, arguments, listed(even), arguments, listed(odd)))
}

// indices lists n numbers starting at first.
func indices(first, n int64) string {
	list := fmt.Sprint(first)
	for k := first + 1; k < first+n; k++ {
		list += fmt.Sprintf(", %d", k)
	}
	return list
}
