package programgen

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// corners returns all combinations of the smallest and largest extents. A quantity monotonic in each extent is
// within bounds if it is so there.
func (o *opener) corners() (list [][]int64) {
	for corner := range 1 << len(o.extents) {
		at := make([]int64, len(o.extents))
		for k, e := range o.extents {
			at[k] = e.Max
			if corner>>k&1 == 1 {
				at[k] = e.Min
			}
		}
		list = append(list, at)
	}
	return list
}

// anyMin and anyMax bound unknown values. Sums of a few of them do not overflow.
const anyMin, anyMax = math.MinInt32 << 16, math.MaxInt32 << 16

// between returns bounds of an integer expression for the given extents.
func (o *opener) between(e expr.Expr, extents []int64) (lo, hi int64) {
	switch n := e.(type) {
	case *expr.Int:
		return n.Value, n.Value
	case *expr.Var:
		return 0, o.elements(n, extents) - 1
	case *expr.Load:
		if k := slices.Index(o.counts, n.Tensor); k >= 0 {
			return extents[k], extents[k]
		}
	case *expr.Select:
		lo, hi = o.between(n.A, extents)
		other, otherMax := o.between(n.B, extents)
		return min(lo, other), max(hi, otherMax)
	case *expr.Binary:
		return o.betweenOf(n, extents)
	}
	return anyMin, anyMax
}

func (o *opener) betweenOf(n *expr.Binary, extents []int64) (lo, hi int64) {
	a, b := o.between(n.A, extents)
	c, d := o.between(n.B, extents)
	switch n.Op {
	case expr.Add:
		lo, hi = a+c, b+d
	case expr.Sub:
		lo, hi = a-d, b-c
	case expr.Min:
		lo, hi = min(a, c), min(b, d)
	case expr.Max:
		lo, hi = max(a, c), max(b, d)
	case expr.Mul:
		if c != d || max(-a, b) > anyMax/max(1, max(c, -c)) {
			return anyMin, anyMax
		}
		lo, hi = min(a*c, b*c), max(a*c, b*c)
	case expr.FloorDiv:
		if c != d || c < 1 {
			return anyMin, anyMax
		}
		lo, hi = expr.FloorDivInt(a, c), expr.FloorDivInt(b, c)
	case expr.FloorMod:
		if c < 1 {
			return anyMin, anyMax
		}
		lo, hi = 0, d-1
	default:
		return anyMin, anyMax
	}
	return max(lo, anyMin), min(hi, anyMax)
}

// elements returns the extent of an axis.
func (o *opener) elements(v *expr.Var, extents []int64) int64 {
	if v.Limit == nil {
		return v.Extent
	}
	_, n := o.between(v.Limit, extents)
	return n
}
