package tolerance

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Roundoff returns the relative rounding error of one operation in a type; 0 for integers.
func Roundoff(d array.DType) float64 {
	switch d {
	case array.Float32:
		return 0x1p-24
	case array.Float64:
		return 0x1p-53
	case array.Float16:
		return 0x1p-11
	case array.BFloat16:
		return 0x1p-8
	default:
		return 0
	}
}

// IsRounded reports whether elements of a stage are rounded to 16 bits when stored. Elements that are only loaded,
// selected or copied were rounded earlier, if at all.
func IsRounded(t *expr.Tensor) bool { return isNarrow(t.DType) && (adds(t) || stored(t.Body) > 0) }

// adds reports whether a stage rounds in each step of a reduction.
func adds(t *expr.Tensor) bool { return t.Combiner == expr.Sum || t.Combiner == expr.Prod }

// roundings counts the places in an expression where a value is rounded to 16 bits; unit is the largest rounding
// error of them.
func roundings(e expr.Expr) (count int, unit float64) {
	expr.Walk(e, func(x expr.Expr) {
		if rounded(x) {
			count, unit = count+1, max(unit, Roundoff(x.DType()))
		}
	})
	return count, unit
}

// stored counts the roundings after which the value is only moved.
func stored(e expr.Expr) (count int) {
	for _, x := range choices(e) {
		count += stored(x)
	}
	if rounded(e) {
		count++
	}
	return count
}

// rounded reports whether the node itself rounds to 16 bits.
func rounded(e expr.Expr) bool { return isNarrow(e.DType()) && !moves(e) && !holds(e, e.DType()) }

func isNarrow(d array.DType) bool { return d == array.Float16 || d == array.BFloat16 }

// holds reports whether the values of an expression are known to be exact in a type: they came from that type, or
// are constant.
func holds(e expr.Expr, d array.DType) bool {
	switch n := e.(type) {
	case *expr.Float, *expr.Int:
		return true
	case *expr.Cast:
		return n.Type.IsFloat() && Roundoff(n.Type) <= Roundoff(d) && holds(n.A, d)
	case *expr.Load:
		return n.DType() == d
	}
	return moves(e) && !slices.ContainsFunc(choices(e), func(x expr.Expr) bool { return !holds(x, d) })
}

// moves reports whether the value of a node is that of an operand, or its negative.
func moves(e expr.Expr) bool { return len(choices(e)) > 0 }

// choices returns the operands of a node whose value equals one of them, up to sign.
func choices(e expr.Expr) []expr.Expr {
	switch n := e.(type) {
	case *expr.Select:
		return []expr.Expr{n.A, n.B}
	case *expr.Binary:
		if n.Op == expr.Max || n.Op == expr.Min {
			return []expr.Expr{n.A, n.B}
		}
	case *expr.Unary:
		if n.Op == expr.Neg || n.Op == expr.Abs {
			return []expr.Expr{n.A}
		}
	}
	return nil
}
