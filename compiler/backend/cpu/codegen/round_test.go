package codegen

import (
	"math"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// stored returns float32 elements, added to others if computed is set, that are stored in bfloat16.
func stored(t *testing.T, computed bool) *expr.Workload {
	t.Helper()
	a, b := expr.NewInput("a", array.Float32, 100), expr.NewInput("b", array.Float32, 100)
	w, err := expr.NewWorkload([]*expr.Tensor{expr.Compute("c", a.Shape, func(i []expr.Expr) expr.Expr {
		if computed {
			return expr.To(array.BFloat16, expr.AddE(a.At(i...), b.At(i...)))
		}
		return expr.To(array.BFloat16, a.At(i...))
	})})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestRoundingIsToTheNearest covers ties to even, infinity and NaN, which stay the same, and the largest value, which
// becomes infinity.
func TestRoundingIsToTheNearest(t *testing.T) {
	values := []float64{0, math.Copysign(0, -1), 1, 1 + 0x1p-8, 1 + 3*0x1p-8, 1 + 0x1p-8 + 0x1p-20, -1 - 0x1p-9, math.MaxFloat32, math.Inf(1),
		math.Inf(-1), math.NaN(), 0x1p-126, 0x1.01p-120, 3e38}
	for _, m := range quick(slices.Concat(modes, pairModes), "avx2", "avx512bf16 of gcc", "bf16") {
		t.Run(m.name, func(t *testing.T) {
			var cases []kerneltest.Case
			for _, computed := range []bool{false, true} {
				w := stored(t, computed)
				args := kerneltest.Fill(w, 1)
				for i := range args[0].Len() {
					args[0].SetFloat(i, values[int(i)%len(values)])
				}
				if computed {
					args[1] = array.New(array.Float32, 100)
				} else {
					args[0].SetFloat(0, 0x1p-130)
				}
				s := sketch.New(w, m.description(t), schedule.Strict)
				applied, err := s.Apply(s.Default())
				if err != nil {
					t.Fatal(err)
				}
				cases = append(cases, kerneltest.Case{Workload: w, Schedule: applied, Workers: 1, Args: args})
			}
			outputs, _, _, err := m.execute(t, cases)
			if err != nil {
				t.Fatal(err)
			}
			for k, c := range cases {
				want, err := expr.Evaluate(c.Workload, c.Args)
				if err != nil {
					t.Fatal(err)
				}
				for i := range want[0].Len() {
					got, want := outputs[k][0].Float(i), want[0].Float(i)
					if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
						t.Errorf("%g is %g, want %g", c.Args[0].Float(i), got, want)
					}
				}
			}
		})
	}
}
