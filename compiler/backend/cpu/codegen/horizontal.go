package codegen

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// across returns the lanes of a value, combined.
func (p *printer) across(n *ir.Across) string {
	lane, lanes := p.lane, p.lanes
	p.lane, p.lanes = n.Lane, n.Lane.Extent
	defer func() { p.lane, p.lanes = lane, lanes }()
	return fmt.Sprintf("%s(%s)", p.unit.helper("across_"+n.Op.String(), n.DType(), p.lanes), p.vector(n.Value))
}

// acrossOps maps names to the operators that reduce lanes.
var acrossOps = map[string]expr.BinaryOp{"add": expr.Add, "mul": expr.Mul, "min": expr.Min, "max": expr.Max}

// across declares the reduction of a vector's lanes. It combines halves until two lanes are left.
func (u *Unit) acrossHelper(head, name, op string, d array.DType, lanes int64) {
	t, scalar := u.vector(d, lanes), cprint.TypeOf(d).Scalar
	if lanes == 2 {
		u.declarations.Declare(name, fmt.Sprintf("%s%s %s(%s x) { return %s; }\n", head, scalar, name, t, u.helpers().Binary(acrossOps[op], d, "x[0]", "x[1]")))
		return
	}
	half := lanes / 2
	inner := u.helper("across_"+op, d, half)
	low := fmt.Sprintf("__builtin_shufflevector(x, x, %s)", cprint.Indices(0, half))
	high := fmt.Sprintf("__builtin_shufflevector(x, x, %s)", cprint.Indices(half, half))
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
		head, t, name, of, parameters, arguments, cprint.List(even), arguments, cprint.List(odd)))
}
