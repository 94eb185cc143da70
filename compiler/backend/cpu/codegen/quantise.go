package codegen

import (
	"fmt"
	"math"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// isClamped reports whether a float32 or float64 is sure to fit into 32 bits or to be NaN, as a quantised value is
// before it is narrowed.
func isClamped(e expr.Expr) bool {
	if n, ok := e.(*expr.Unary); ok && n.Op == expr.Round {
		e = n.A
	}
	outer, ok := e.(*expr.Binary)
	if !ok || outer.Op != expr.Min || cprint.IsHalf(outer.A.DType()) || !outer.A.DType().IsFloat() {
		return false
	}
	inner, ok := outer.A.(*expr.Binary)
	if !ok || inner.Op != expr.Max {
		return false
	}
	high, okHigh := outer.B.(*expr.Float)
	low, okLow := inner.B.(*expr.Float)
	return okHigh && okLow && low.Value >= math.MinInt32 && high.Value <= math.MaxInt32-1<<8 && low.Value <= high.Value
}

// wholeOf returns the operand of the rounding in a float32 that is rounded and known to fit into 32 bits or to be
// NaN. Integral bounds keep the same values before and after rounding.
func wholeOf(e expr.Expr) (unrounded expr.Expr, ok bool) {
	unrounded, ok = beforeRounding(e)
	return unrounded, ok && e.DType() == array.Float32 && isClamped(unrounded)
}

func beforeRounding(e expr.Expr) (unrounded expr.Expr, ok bool) {
	switch n := e.(type) {
	case *expr.Unary:
		return n.A, n.Op == expr.Round
	case *expr.Binary:
		bound, whole := n.B.(*expr.Float)
		if n.Op != expr.Min && n.Op != expr.Max || !whole || bound.Value != math.Trunc(bound.Value) {
			return nil, false
		}
		if unrounded, ok = beforeRounding(n.A); ok {
			return expr.Bin(n.Op, unrounded, bound), true
		}
	}
	return nil, false
}

// quantised prints the cast of a rounded float32 within 32 bits to an integer. The cast may be to at most 16 bits,
// after an integer such as a zero point is added.
func (p *printer) quantised(n *expr.Cast) (code string, ok bool) {
	if !n.Type.IsInt() {
		return "", false
	}
	if x, ok := wholeOf(n.A); ok {
		return p.unit.cast(p.nearest(x, n.Type), array.Int32, n.Type, p.lanes), true
	}
	sum, ok := n.A.(*expr.Binary)
	if !ok || sum.Op != expr.Add || sum.DType() != array.Int32 || n.Type.Bytes() > 2 {
		return "", false
	}
	whole, ok := sum.A.(*expr.Cast)
	if !ok || whole.Type != array.Int32 {
		return "", false
	}
	x, ok := wholeOf(whole.A)
	if !ok {
		return "", false
	}
	return p.unit.cast(fmt.Sprintf("(%s + %s)", p.nearest(x, n.Type), p.vector(sum.B)), array.Int32, n.Type, p.lanes), true
}

// nearest returns a float32 rounded to 32 bits. The caller uses as many bits as the type has.
func (p *printer) nearest(x expr.Expr, used array.DType) string {
	op := "nearest_float32"
	if used.Bytes() <= 2 {
		op = "nearest_low_float32"
	}
	return fmt.Sprintf("%s(%s)", p.unit.helper(op, array.Int32, p.lanes), p.vector(x))
}

// nearest holds the instructions that round floats to integers.
var nearest = instructions{
	4:  {"defined(__SSE2__)", "({t})__builtin_ia32_cvtps2dq(x)"},
	8:  {"defined(__AVX__)", "({t})__builtin_ia32_cvtps2dq256(x)"},
	16: {"defined(__AVX512F__)", "({t})__builtin_ia32_cvtps2dq512_mask(x, (int __attribute__((vector_size(64)))){0}, -1, 4)"},
}

// nearestHelper declares the functions "nearest_float32" and "nearest_low_float32" and returns false for any other
// op. NaN becomes zero, as only the lower bits of the instructions' result, 1 << 31, are used.
func (u *Unit) nearestHelper(head, name, op, t string, lanes int64) bool {
	if op != "nearest_float32" && op != "nearest_low_float32" {
		return false
	}
	x, mask := u.vector(array.Float32, lanes), u.vector(array.Int32, lanes)
	number := fmt.Sprintf("  x = %s((%s)(x == x), x, (%s){0});\n", u.helper("select", array.Float32, lanes), mask, x)
	plain := fmt.Sprintf("  return __builtin_convertvector(%s(x), %s);\n", u.helper("round", array.Float32, lanes), t)
	const low = "nearest_low_float32"
	if op == low {
		plain, number = number+plain, ""
	}
	body := number + u.byInstruction(nearest, lanes, []string{"x"}, plain, func() string { return u.helper(low, array.Int32, lanes/2) })
	u.declarations.Declare(name, fmt.Sprintf("%s%s %s(%s x) {\n%s}\n", head, t, name, x, strings.ReplaceAll(body, "{t}", t)))
	return true
}
