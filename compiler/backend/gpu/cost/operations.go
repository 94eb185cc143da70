package cost

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Operations counts the threads' operations by kind. Integers counts those of addresses and conditions.
type Operations struct {
	MultiplyAdds, Adds, Divides, Transcendentals, Integers, Selects, Casts float64
}

// Slots returns how many issue slots of a multiprocessor the operations take. A division or a root is a short
// sequence, a transcendental function a polynomial of about twenty steps.
func (o *Operations) Slots() float64 {
	return o.MultiplyAdds + o.Adds + 8*o.Divides + 20*o.Transcendentals + o.Integers + o.Selects + 2*o.Casts
}

// integerDivision is the number of instructions of a quotient or remainder by a constant: a product, a shift and a
// correction.
const integerDivision = 4

// binary counts one operation, except for the multiplication of a multiply-add.
func (o *Operations) binary(n *expr.Binary, times float64) {
	if (n.Op == expr.Add || n.Op == expr.Sub) && n.DType().IsFloat() && (isProduct(n.A) || isProduct(n.B)) {
		// The product is counted as an addition in its own turn, since one instruction computes both.
		o.MultiplyAdds += times
		o.Adds -= times
		return
	}
	o.kind(n.Op.Work(), n.A.DType().IsFloat(), times)
}

func (o *Operations) kind(w expr.Work, float bool, times float64) {
	switch {
	case w == expr.Transcendental:
		o.Transcendentals += times
	case w == expr.Division && !float:
		o.Integers += integerDivision * times
	case w == expr.Division:
		o.Divides += times
	case float:
		o.Adds += times
	default:
		o.Integers += times
	}
}

func isProduct(e expr.Expr) bool {
	n, ok := e.(*expr.Binary)
	return ok && n.Op == expr.Mul
}

// products returns how many matrix products of warp instructions take the time of one of a format. Those of
// warpgroups take half the time.
func products(f schedule.Format) float64 {
	switch {
	case f == schedule.TF32Compensated:
		return 3
	case f.Warpgroup():
		return 0.5
	}
	return 1
}
