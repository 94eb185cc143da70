package codegen

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// quantisedSigmoid returns the sigmoid between two quantisations of 313 values, which leave a remainder for every
// vector length.
func quantisedSigmoid(t *testing.T, from, to array.DType) *expr.Workload {
	t.Helper()
	const f = array.Float32
	x := expr.NewInput("x", from, 313)
	w, err := expr.NewWorkload([]*expr.Tensor{expr.Compute("y", x.Shape, func(i []expr.Expr) expr.Expr {
		real := expr.MulE(expr.To(f, x.At(i...)), expr.F(f, 0.0625))
		sigmoid := expr.DivE(expr.F(f, 1), expr.AddE(expr.F(f, 1), expr.Un(expr.Exp, expr.Un(expr.Neg, real))))
		return kerneltest.Quantised(expr.MulE(sigmoid, expr.F(f, 250)), to)
	})})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// lookupModes lists modes whose targets have byte lookups, and one whose compiler does not know about them.
var lookupModes = []mode{
	{name: "clang", target: "x86-64-v4", features: []string{"avx512vbmi"}, compiler: "clang-19", flags: []string{"-O1"}},
	{name: "gcc", target: "x86-64-v4", features: []string{"avx512vbmi"}, compiler: "gcc", flags: []string{"-O1"}},
	{name: "one by one", target: "x86-64-v4", features: []string{"avx512vbmi"}, compiler: "clang-19", flags: []string{"-O1", "-mno-avx512vbmi"}},
}

// TestFunctionsOfBytesAreExact covers all values, signed and unsigned.
func TestFunctionsOfBytesAreExact(t *testing.T) {
	for _, m := range quick(lookupModes, "clang", "one by one") {
		t.Run(m.name, func(t *testing.T) {
			var cases []kerneltest.Case
			for _, types := range [][2]array.DType{{array.Uint8, array.Uint8}, {array.Uint8, array.Int8}, {array.Int8, array.Uint8}, {array.Int8, array.Int8}} {
				w := quantisedSigmoid(t, types[0], types[1])
				s := sketch.New(w, m.description(t), schedule.Strict)
				applied, err := s.Apply(s.Default())
				if err != nil {
					t.Fatal(err)
				}
				args := kerneltest.Fill(w, 1)
				for k := range args[0].Data {
					args[0].Data[k] = byte(k)
				}
				cases = append(cases, kerneltest.Case{Workload: w, Schedule: applied, Workers: 1, Args: args})
			}
			checkBits(t, m, cases)
		})
	}
}
