package gpusim

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/tolerance"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// TestErrorsOfFormatsAreBounded checks that products of random numbers in each format differ from those in doubles by
// less than a candidate's tolerance, but enough to show that the format was used. Errors are relative to the largest
// result.
func TestErrorsOfFormatsAreBounded(t *testing.T) {
	on := played(t)
	const m, k, n = 64, 256, 64
	w := kerneltest.Product(t, m, k, n)
	rng := rand.New(rand.NewPCG(1, 2))
	args := []*array.Array{array.New(array.Float32, m, k), array.New(array.Float32, k, n)}
	for _, a := range args {
		for i := range a.Len() {
			a.SetFloat(i, rng.NormFloat64())
		}
	}
	want := make([]float64, m*n)
	largest := 0.0
	for i := range want {
		for j := range int64(k) {
			want[i] += args[0].Float(int64(i)/n*k+j) * args[1].Float(j*n+int64(i)%n)
		}
		largest = max(largest, math.Abs(want[i]))
	}
	space := Backend{}.Space(w, on, schedule.Fast)
	// Upper bounds of the errors: about those of float32, and one unit in the last place of the format.
	limit := map[string]float64{"direct": 1e-6, "compensated TF32": 2e-6, "TF32": 0x1p-10, "BF16": 0x1p-7, "warpgroup TF32": 0x1p-9}
	for _, by := range space.Algorithms() {
		part := space.Of(by)
		made, err := part.Apply(part.Default())
		if err != nil {
			t.Fatal(err)
		}
		found := errorOf(t, w, made, args, want) / largest
		t.Logf("%s: %.2g", by.Name, found)
		if allowed := tolerance.Tolerances(w)[0].Times(made.ErrorGrowth()); found > allowed || found > limit[by.Name] || found < limit[by.Name]/100 {
			t.Errorf("%s: the error is %.2g, expected at most %.2g and not much less; a candidate may have %.2g", by.Name, found, limit[by.Name], allowed)
		}
	}
}

// errorOf returns the largest error of a schedule's result.
func errorOf(t *testing.T, w *expr.Workload, s *schedule.Schedule, args []*array.Array, want []float64) (largest float64) {
	t.Helper()
	on := played(t)
	u := newUnit(on)
	if _, err := u.AddWithPacks("k", "k", s); err != nil {
		t.Fatal(err)
	}
	program, err := toolchaintest.Program(t, "clang-19", append(on.ClangFlags(), "-std=gnu11", level(), "-w"), kerneltest.Source(u.Source(), []string{"k"}))
	if err != nil {
		t.Fatal(err)
	}
	outputs, _, err := kerneltest.Run([]string{program}, []kerneltest.Case{{Workload: w, Schedule: s, Workers: 1, Args: args}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range want {
		largest = max(largest, math.Abs(outputs[0][0].Float(int64(i))-x))
	}
	return largest
}
