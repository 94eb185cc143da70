package codegen

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// vectorLogistic computes 1 + e^-x, the denominator of the logistic function. The 1 hides terms below 2^-24, so one
// reduction step suffices and no result is denormal. Twice the polynomial times 2^(n-1) reaches infinity. For
// negative x the error grows with the sum, up to 4.5 units in the last place at 1e38.
const vectorLogistic = `{f} {name}({f} x) {
  {f} y = {max}({f}_splat(-89.0f), {min}({f}_splat(87.0f), x));
  {f} t = {fma}(y, {k}(-0x1.715476p+0f), {k}(0x1.8p+23f)), r = {fma}(t - 0x1.8p+23f, {k}(0x1.62e43p-1f), y);
  {f} p = {fma}(r, {k}(0x1.6a23cep-9f), {k}(-0x1.123a2p-6f));
  p = {fma}(p, r, {k}(0x1.5558f2p-4f));
  p = {fma}(p, r, {k}(-0x1.555492p-2f));
  p = {fma}(p, r, {k}(0x1.fffffcp-1f));
  p = {fma}(p, r, {k}(-2.0f));
  p = {fma}(p, r, {k}(2.0f));
  return {fma}(p, ({f})((({i})t << 23) + 0x3f000000), {k}(1.0f));
}
`

// byLogistic prints a quotient by the denominator of the logistic function (sigmoid), or a product with its
// reciprocal (swish).
func (p *printer) byLogistic(n *expr.Binary) (code string, ok bool) {
	over, by := n.A, n.B
	switch n.Op {
	case expr.Div:
	case expr.Mul:
		if isSigmoid(over) {
			over, by = by, over
		}
		if !isSigmoid(by) {
			return "", false
		}
		by = by.(*expr.Binary).B
	default:
		return "", false
	}
	x, ok := logistic(by)
	if !ok {
		return "", false
	}
	return fmt.Sprintf("(%s / %s(%s))", p.vector(over), p.unit.helper("logistic", array.Float32, p.lanes), p.vector(x)), true
}

func isSigmoid(e expr.Expr) bool {
	q, ok := e.(*expr.Binary)
	if !ok || q.Op != expr.Div || !isOne(q.A) {
		return false
	}
	_, ok = logistic(q.B)
	return ok
}

// logistic returns x if e is 1 + e^-x in float32.
func logistic(e expr.Expr) (x expr.Expr, ok bool) {
	sum, ok := e.(*expr.Binary)
	if !ok || sum.Op != expr.Add || sum.A.DType() != array.Float32 || !isOne(sum.A) {
		return nil, false
	}
	power, ok := sum.B.(*expr.Unary)
	if !ok || power.Op != expr.Exp {
		return nil, false
	}
	minus, ok := power.A.(*expr.Unary)
	if !ok || minus.Op != expr.Neg {
		return nil, false
	}
	return minus.A, true
}

func isOne(e expr.Expr) bool {
	f, ok := e.(*expr.Float)
	return ok && f.Value == 1
}
