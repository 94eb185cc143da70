package expr

import (
	"math"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

// evaluate runs a workload with one output.
func evaluate(t testing.TB, out *Tensor, args ...*array.Array) (*array.Array, error) {
	t.Helper()
	w, err := NewWorkload([]*Tensor{out})
	if err != nil {
		t.Fatal(err)
	}
	outs, err := Evaluate(w, args)
	if err != nil {
		return nil, err
	}
	return outs[0], nil
}

// scalar evaluates an expression without axes.
func scalar(t *testing.T, e Expr) (*array.Array, error) {
	t.Helper()
	return evaluate(t, Compute("x", nil, func([]Expr) Expr { return e }))
}

func TestEvaluateScalars(t *testing.T) {
	i8 := func(v int64) Expr { return &Int{Value: v, Type: array.Int8} }
	u64 := func(v int64) Expr { return &Int{Value: v, Type: array.Uint64} }
	i32 := func(v int64) Expr { return &Int{Value: v, Type: array.Int32} }
	f32 := func(v float64) Expr { return F(array.Float32, v) }
	f64 := func(v float64) Expr { return F(array.Float64, v) }
	third := float64(float32(1) / 3)
	for _, c := range []struct {
		name string
		e    Expr
		want float64
	}{
		{"float32 is rounded", newBinary(Div, f32(1), f32(3)), third},
		{"rounding at each node", Bin(Sub, Bin(Add, f32(1<<24), f32(1)), f32(1<<24)), 0},
		{"float64 is not", newBinary(Div, f64(1), f64(3)), 1.0 / 3},
		{"int8 wraps", newBinary(Add, i8(100), i8(100)), -56},
		{"int8 negation wraps", newUnary(Neg, i8(-128)), -128},
		{"division truncates", newBinary(Div, i32(-7), i32(2)), -3},
		{"floor division", newBinary(FloorDiv, i32(-7), i32(2)), -4},
		{"floor modulo", newBinary(FloorMod, i32(-7), i32(2)), 1},
		{"floor modulo of a negative divisor", newBinary(FloorMod, i32(7), i32(-2)), -1},
		{"modulo follows the dividend", newBinary(Mod, i32(-7), i32(2)), -1},
		{"float modulo", newBinary(Mod, f32(-7.5), f32(2)), -1.5},
		{"unsigned division", newBinary(Div, u64(-2), u64(2)), math.MaxInt64},
		{"unsigned order", To(array.Int32, newBinary(Lt, u64(1), u64(-1))), 1},
		{"unsigned to float", &Cast{array.Float64, u64(-1)}, 1 << 64},
		{"float to int truncates", &Cast{array.Int32, f32(-2.7)}, -2},
		{"float to int8 wraps", &Cast{array.Int8, f32(200)}, -56},
		{"float to bool", &Cast{array.Bool, f32(0.25)}, 1},
		{"int to bool", &Cast{array.Bool, i32(2)}, 1},
		{"round half to even", Un(Round, f32(2.5)), 2},
		{"half precision cast", To(array.Float32, &Cast{array.Float16, f32(third)}), 0.333251953125},
		{"bfloat16 cast", To(array.Float32, &Cast{array.BFloat16, f32(third)}), 0.333984375},
		{"nan test", To(array.Int32, Un(IsNaN, newBinary(Sub, f32(math.Inf(1)), f32(math.Inf(1))))), 1},
		{"shift", newBinary(ShiftRight, u64(-1), u64(60)), 15},
		{"pow", Bin(Pow, f32(2), f32(10)), 1024},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := scalar(t, c.e)
			if err != nil {
				t.Fatal(err)
			}
			if got.Float(0) != c.want {
				t.Errorf("got %v, want %v", got.Float(0), c.want)
			}
		})
	}
}

func TestEvaluateRefuses(t *testing.T) {
	x := NewInput("x", array.Float32, 4)
	for _, c := range []struct {
		name string
		out  *Tensor
		args []*array.Array
		want string
	}{
		{"load out of bounds", Compute("o", []int64{5}, func(i []Expr) Expr { return x.At(i[0]) }),
			[]*array.Array{array.New(array.Float32, 4)}, "index 4 of dimension 0"},
		{"negative index", Compute("o", []int64{5}, func(i []Expr) Expr { return x.At(SubE(i[0], I(1))) }),
			[]*array.Array{array.New(array.Float32, 4)}, "index -1 of dimension 0"},
		{"wrong type", Compute("o", []int64{4}, func(i []Expr) Expr { return x.At(i[0]) }),
			[]*array.Array{array.New(array.Float64, 4)}, "argument 0: f64[4], want f32[4]"},
		{"wrong shape", Compute("o", []int64{4}, func(i []Expr) Expr { return x.At(i[0]) }),
			[]*array.Array{array.New(array.Float32, 2, 2)}, "f32[2 2], want f32[4]"},
		{"missing argument", Compute("o", []int64{4}, func(i []Expr) Expr { return x.At(i[0]) }), nil, "0 arguments"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := evaluate(t, c.out, c.args...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestSelectEvaluatesOnlyTheChosenSide(t *testing.T) {
	x := NewInput("x", array.Float32, 3)
	padded := Compute("padded", []int64{5}, func(i []Expr) Expr {
		p := SubE(i[0], I(1))
		return Sel(InRange(p, 0, 3), x.At(p), F(array.Float32, -1))
	})
	got, err := evaluate(t, padded, array.FromFloat32([]float32{1, 2, 3}, 3))
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range []float64{-1, 1, 2, 3, -1} {
		if got.Float(int64(k)) != want {
			t.Errorf("element %d is %v, want %v", k, got.Float(int64(k)), want)
		}
	}
}

func TestEvaluateReductions(t *testing.T) {
	x := NewInput("x", array.Int32, 2, 3)
	values := array.New(array.Int32, 2, 3)
	for k, v := range []int64{3, -1, 2, 5, 4, -6} {
		values.SetInt(int64(k), v)
	}
	for c, want := range map[Combiner][2]int64{Sum: {4, 3}, Prod: {-6, -120}, Maximum: {3, 5}, Minimum: {-1, -6}} {
		out := ReduceOver("o", c, []int64{2}, []int64{3}, func(i, r []Expr) Expr { return x.At(i[0], r[0]) })
		got, err := evaluate(t, out, values)
		if err != nil {
			t.Fatal(err)
		}
		if got.Int(0) != want[0] || got.Int(1) != want[1] {
			t.Errorf("%v: got %d and %d, want %v", c, got.Int(0), got.Int(1), want)
		}
	}
}

// TestDotAgreesWithTheGeneralPath computes one product by the fast inner loop and, with a term that defeats it,
// without.
func TestDotAgreesWithTheGeneralPath(t *testing.T) {
	a, b := NewInput("a", array.Float32, 7, 5, 6), NewConstant("b", array.Float32, 5, 6, 9)
	product := func(term func(Expr) Expr) *Tensor {
		return ReduceOver("c", Sum, []int64{7, 9}, []int64{5, 6}, func(i, r []Expr) Expr {
			return term(MulE(a.At(i[0], r[0], r[1]), b.At(r[0], r[1], i[1])))
		})
	}
	av, bv := array.New(array.Float32, a.Shape...), array.New(array.Float32, b.Shape...)
	for _, v := range []*array.Array{av, bv} {
		for i := range v.Len() {
			v.SetFloat(i, math.Sin(float64(3*i+1)))
		}
	}
	fast, err := evaluate(t, product(func(e Expr) Expr { return e }), av, bv)
	if err != nil {
		t.Fatal(err)
	}
	slow, err := evaluate(t, product(func(e Expr) Expr { return MulE(e, F(array.Float32, 1)) }), av, bv)
	if err != nil {
		t.Fatal(err)
	}
	if string(fast.Data) != string(slow.Data) {
		t.Error("the two paths differ")
	}
}

func BenchmarkEvaluateElementWise(b *testing.B) {
	const n = 1 << 20
	x := NewInput("x", array.Float32, 1024, 1024)
	c := NewConstant("c", array.Float32, 1024)
	out := Compute("o", x.Shape, func(i []Expr) Expr {
		return MaxE(AddE(MulE(x.At(i...), F(array.Float32, 2)), c.At(i[1])), F(array.Float32, 0))
	})
	args := []*array.Array{array.New(array.Float32, 1024, 1024), array.New(array.Float32, 1024)}
	b.SetBytes(3 * n) // three operations an element: "MB/s" reads as million operations a second
	for b.Loop() {
		if _, err := evaluate(b, out, args...); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEvaluateTranspose(b *testing.B) {
	x := NewInput("x", array.Float32, 1024, 1024)
	out := Compute("o", x.Shape, func(i []Expr) Expr { return x.At(i[1], i[0]) })
	b.SetBytes(1 << 20)
	for b.Loop() {
		if _, err := evaluate(b, out, array.New(array.Float32, 1024, 1024)); err != nil {
			b.Fatal(err)
		}
	}
}

// TestIntegersHaveAnAnswerForEveryOperand: none traps or depends on the machine.
func TestIntegersHaveAnAnswerForEveryOperand(t *testing.T) {
	const floor = -128
	for _, c := range []struct {
		op         BinaryOp
		a, b, want int64
	}{
		{Div, 5, 0, 0}, {Mod, 5, 0, 0}, {FloorDiv, -5, 0, 0}, {FloorMod, -5, 0, 0}, {Div, floor, -1, floor}, {Mod, floor, -1, 0},
		{FloorDiv, floor, -1, floor}, {FloorMod, -5, 3, 1}, {Add, 127, 1, floor}, {Sub, floor, 1, 127}, {Mul, 64, 4, 0},
		{ShiftLeft, 1, 8, 0}, {ShiftRight, -1, 100, -1}, {ShiftRight, 64, 8, 0}, {ShiftLeft, 1, -1, 0},
		{Pow, 2, 7, floor}, {Pow, 3, 5, -13}, {Pow, 2, -1, 0}, {Pow, -1, -3, -1}, {Pow, 1, -3, 1}, {Pow, 0, 0, 1},
	} {
		a, b := NewInput("a", array.Int8), NewInput("b", array.Int8)
		w, err := NewWorkload([]*Tensor{Compute("o", nil, func([]Expr) Expr { return Bin(c.op, a.At(), b.At()) })}, a, b)
		if err != nil {
			t.Fatal(err)
		}
		x, y := array.New(array.Int8), array.New(array.Int8)
		x.SetInt(0, c.a)
		y.SetInt(0, c.b)
		out, err := Evaluate(w, []*array.Array{x, y})
		if err != nil || out[0].Int(0) != c.want {
			t.Errorf("%v of %d and %d: got %v, %v, want %d", c.op, c.a, c.b, out, err, c.want)
		}
	}
}

func TestFloatsBeyondAnIntegerTypeSaturateAndWrap(t *testing.T) {
	for _, c := range []struct {
		d       array.DType
		v, want float64
	}{
		{array.Int8, 200, -56}, {array.Uint8, -1, 255}, {array.Int32, 3e9, math.MaxInt32}, {array.Int32, -3e9, math.MinInt32},
		{array.Int8, 3e9, -1}, {array.Uint32, 3e9, 3e9}, {array.Int64, -1e30, math.MinInt64}, {array.Int16, math.NaN(), 0},
		{array.Uint64, 1e30, math.MaxUint64}, {array.Int32, -2.9, -2},
	} {
		x := NewInput("x", array.Float64)
		w, err := NewWorkload([]*Tensor{Compute("o", nil, func([]Expr) Expr { return To(c.d, x.At()) })})
		if err != nil {
			t.Fatal(err)
		}
		a := array.New(array.Float64)
		a.SetFloat(0, c.v)
		out, err := Evaluate(w, []*array.Array{a})
		if err != nil || out[0].Float(0) != c.want {
			t.Errorf("%g to %v: got %v, %v, want %g", c.v, c.d, out, err, c.want)
		}
	}
}
