package cprint

import (
	"math"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// short is a dialect for tests.
var short = Dialect{Head: "inline ", Math: func(name string, d array.DType) string { return "my_" + name + TypeOf(d).Builtin }, Index: "int", Half: "HALF", Float: "FLOAT"}

// TestExpressionsAsText in two dialects: operators that C leaves open go through helpers or unsigned types, and halves
// through float.
func TestExpressionsAsText(t *testing.T) {
	x, i := expr.NewInput("x", array.Float32, 8), expr.NewInput("i", array.Int32, 8)
	h, b := expr.NewInput("h", array.Float16, 8), expr.NewInput("b", array.BFloat16, 8)
	v := &expr.Var{Name: "v", Extent: 8}
	for _, c := range []struct {
		e       expr.Expr
		c, mine string
	}{
		{expr.AddE(expr.MulE(v, expr.I(4)), expr.I(-3)), "((v * 4) + (-3))", ""},
		{expr.Bin(expr.FloorDiv, v, expr.I(2)), "(v / 2)", ""},
		{expr.Un(expr.Exp, x.At(v)), "__builtin_expf(x[v])", "my_expf(x[v])"},
		{expr.Un(expr.Rsqrt, x.At(v)), "(1 / __builtin_sqrtf(x[v]))", "(1 / my_sqrtf(x[v]))"},
		{expr.AddE(i.At(v), i.At(expr.I(1))), "((int32_t)((uint32_t)i[v] + (uint32_t)i[1]))", ""},
		{expr.Bin(expr.Div, i.At(v), i.At(expr.I(0))), "tilth_div_i32x1(i[v], i[0])", ""},
		{expr.MaxE(x.At(v), expr.F(array.Float32, 0)), "tilth_max_f32x1(x[v], 0x0p+00f)", ""},
		{expr.AddE(x.At(v), expr.MulE(x.At(v), x.At(v))), "(x[v] + (x[v] * x[v]))", ""},
		{expr.FusedBin(expr.Add, x.At(v), expr.MulE(x.At(v), x.At(expr.I(1)))), "tilth_fma_f32x1(x[v], x[1], x[v])", ""},
		{expr.FusedBin(expr.Sub, x.At(v), expr.MulE(x.At(v), x.At(expr.I(1)))), "tilth_fma_f32x1((-x[v]), x[1], x[v])", ""},
		{expr.FusedBin(expr.Add, i.At(v), expr.MulE(i.At(v), i.At(v))), "((int32_t)((uint32_t)i[v] + (uint32_t)((int32_t)((uint32_t)i[v] * (uint32_t)i[v]))))", ""},
		{expr.AddE(h.At(v), h.At(expr.I(1))), "((_Float16)(((float)h[v]) + ((float)h[1])))", "HALF((FLOAT(h[v]) + FLOAT(h[1])))"},
		{expr.F(array.Float16, 0.5), "((_Float16)0x1p-01f)", "HALF(0x1p-01f)"},
		{expr.To(array.Float32, b.At(v)), "tilth_from_bf16_f32x1(b[v])", ""},
		{expr.To(array.Int8, x.At(v)), "((int8_t)tilth_from_f32_i32x1(x[v]))", ""},
		{expr.Sel(expr.Bin(expr.Lt, v, expr.I(3)), x.At(v), expr.F(array.Float32, math.Inf(-1))), "((v < 3) ? x[v] : (-__builtin_inff()))", ""},
	} {
		for _, d := range []Dialect{C, short} {
			s := Scalars{Helpers: Helpers{&Declarations{}, d}, Var: func(v *expr.Var) string { return v.Name }}
			s.Load = func(l *expr.Load) string { return l.Tensor.Name + "[" + s.Text(l.Index[0]) + "]" }
			want := c.c
			if d.Index == short.Index && c.mine != "" {
				want = c.mine
			}
			if got := s.Text(c.e); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
}

// TestHelpersAreDeclaredOnce, each under the head of its dialect, behind those that it uses.
func TestHelpersAreDeclaredOnce(t *testing.T) {
	d := &Declarations{}
	h := Helpers{d, short}
	for range 2 {
		if name := h.Helper("min", array.Float32); name != "tilth_min_f32x1" {
			t.Errorf("the helper is %s", name)
		}
	}
	if got, want := d.Text(), "inline float tilth_min_f32x1(float a, float b) { return a < b || a != a ? a : b; }\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
