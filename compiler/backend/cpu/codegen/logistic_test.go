package codegen

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestLogistic covers sigmoid and swish with both operand orders, at limits and NaN. In vectors each is one division
// by vectorLogistic.
func TestLogistic(t *testing.T) {
	one := expr.F(array.Float32, 1)
	sigmoid := func(x expr.Expr) expr.Expr {
		return expr.DivE(one, expr.AddE(one, expr.Un(expr.Exp, expr.Un(expr.Neg, x))))
	}
	cases := []kerneltest.Case{
		operatorCase(t, array.Float32, "sigmoid", func(a, _ expr.Expr) expr.Expr { return sigmoid(a) }),
		operatorCase(t, array.Float32, "swish", func(a, _ expr.Expr) expr.Expr { return expr.MulE(a, sigmoid(a)) }),
		operatorCase(t, array.Float32, "gate", func(a, b expr.Expr) expr.Expr { return expr.MulE(sigmoid(b), a) }),
	}
	for _, m := range quick(modes, "avx512", "neon") {
		t.Run(m.name, func(t *testing.T) { checkCases(t, t, m, cases) })
	}
	text, _ := modes[1].source(t, cases)
	if strings.Contains(text, "tilth_exp") || strings.Count(text, "/ tilth_logistic") < len(cases) {
		t.Error("an exponential was not recognised as the logistic function's")
	}
}
