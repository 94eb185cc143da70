package codegen

import (
	"bytes"
	"math"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// quantisations returns the forms in which models round: bounds before or after, and a zero point in float32 or as an
// integer.
func quantisations(t *testing.T, to array.DType) (list []*expr.Workload) {
	t.Helper()
	const f = array.Float32
	low, high := expr.To(f, expr.Lowest(to)), expr.To(f, expr.Highest(to))
	bounded := func(x expr.Expr) expr.Expr { return expr.MinE(expr.MaxE(x, low), high) }
	round := func(x expr.Expr) expr.Expr { return expr.Un(expr.Round, x) }
	a := expr.NewInput("a", f, 100)
	for _, value := range []func(x expr.Expr) expr.Expr{
		func(x expr.Expr) expr.Expr { return round(bounded(x)) },
		func(x expr.Expr) expr.Expr { return bounded(round(x)) },
		func(x expr.Expr) expr.Expr { return expr.MinE(round(expr.MaxE(x, low)), high) },
		func(x expr.Expr) expr.Expr { return bounded(expr.AddE(round(x), expr.F(f, 3))) },
		func(x expr.Expr) expr.Expr {
			return expr.AddE(expr.To(array.Int32, round(bounded(x))), expr.F(array.Int32, 3))
		},
	} {
		w, err := expr.NewWorkload([]*expr.Tensor{expr.Compute("q", a.Shape, func(i []expr.Expr) expr.Expr { return expr.To(to, value(a.At(i...))) })})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, w)
	}
	return list
}

// TestQuantisationsAreExact covers ties, values beyond the bounds, infinity and NaN, in all forms.
func TestQuantisationsAreExact(t *testing.T) {
	values := []float64{0, 0.5, 1.5, 2.5, -0.5, -1.5, 126.5, 127.5, 254.5, 255.5, -128.5, -129.5, 32767.5, 3e9, -3e9, 1e38,
		math.Inf(1), math.Inf(-1), math.NaN(), 0.49999997, 200.25}
	for _, m := range quick(modes, "avx512", "neon") {
		t.Run(m.name, func(t *testing.T) {
			var cases []kerneltest.Case
			for _, to := range []array.DType{array.Uint8, array.Int8, array.Int32} {
				for _, w := range quantisations(t, to) {
					s := sketch.New(w, m.description(t), schedule.Strict)
					applied, err := s.Apply(s.Default())
					if err != nil {
						t.Fatal(err)
					}
					args := kerneltest.Fill(w, 1)
					for i := range args[0].Len() {
						args[0].SetFloat(i, values[int(i)%len(values)])
					}
					cases = append(cases, kerneltest.Case{Workload: w, Schedule: applied, Workers: 1, Args: args})
				}
			}
			checkBits(t, m, cases)
		})
	}
}

// checkBits checks that the first outputs of cases are bit-identical to the evaluator's.
func checkBits(t *testing.T, m mode, cases []kerneltest.Case) {
	t.Helper()
	outputs, _, _, err := m.execute(t, cases)
	if err != nil {
		t.Fatal(err)
	}
	for k, c := range cases {
		want, err := expr.Evaluate(c.Workload, c.Args)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(outputs[k][0].Data, want[0].Data) {
			t.Errorf("got %v, want %v of\n%s", outputs[k][0].Data, want[0].Data, c.Text())
		}
	}
}
