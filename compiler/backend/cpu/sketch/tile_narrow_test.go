package sketch_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// castProduct returns a product of rows of data by 1024 x 1024 weights, of the given types.
func castProduct(t *testing.T, rows int64, data, weights array.DType) *expr.Workload {
	t.Helper()
	const n, f = 1024, array.Float32
	a, b := expr.NewInput("a", data, rows, n), expr.NewConstant("b", weights, n, n)
	return sketch.WorkloadOf(t, expr.ReduceOver("product", expr.Sum, []int64{rows, n}, []int64{n}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(expr.To(f, a.At(i[0], r[0])), expr.To(f, b.At(r[0], i[1])))
	}))
}

// TestWeightsAreCastWhereItCostsLess checks that a product bound by its weights casts them in the kernel, and that
// weights with much reuse are cast when the model is compiled.
func TestWeightsAreCastWhereItCostsLess(t *testing.T) {
	for _, name := range []string{"x86-64-v3", "arm64"} {
		for _, weights := range []array.DType{array.BFloat16, array.Float16} {
			for rows, want := range map[int64]bool{1: false, 512: true} {
				s := sketch.New(castProduct(t, rows, array.Float32, weights), sketch.Target(t, name), schedule.Strict)
				applied, err := s.Apply(s.Default())
				if err != nil {
					t.Fatal(err)
				}
				if widened := strings.Contains(string(applied.Trace()), "\nwiden "); widened != want {
					t.Errorf("%s, %d rows by weights in %v: cast before %v, want %v", name, rows, weights, widened, want)
				}
			}
		}
	}
}

// TestIntegersAreCastInTheKernel checks this for any reuse: integers are stored for their size.
func TestIntegersAreCastInTheKernel(t *testing.T) {
	s := sketch.New(castProduct(t, 512, array.Float32, array.Int8), sketch.Target(t, "x86-64-v3"), schedule.Strict)
	for _, p := range s.Defaults() {
		applied, err := s.Apply(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, added := applied.AddedBytes(); added > 0 {
			t.Errorf("weights take %d bytes more:\n%s", added, applied.Trace())
		}
	}
}

// TestFewerBytesOfWeightsCostLess checks that a product bound by its weights takes half the time or less.
func TestFewerBytesOfWeightsCostLess(t *testing.T) {
	costs := map[array.DType]float64{}
	for _, d := range []array.DType{array.Float32, array.BFloat16, array.Int8} {
		s := sketch.New(castProduct(t, 1, array.Float32, d), sketch.Target(t, "x86-64-v3"), schedule.Strict)
		costs[d] = s.Cost(s.Default())
	}
	if costs[array.BFloat16] > 0.7*costs[array.Float32] {
		t.Errorf("weights in bfloat16 cost %.0f, in float32 %.0f", costs[array.BFloat16], costs[array.Float32])
	}
	if costs[array.Int8] > 0.7*costs[array.BFloat16] {
		t.Errorf("weights in integers cost %.0f, in bfloat16 %.0f", costs[array.Int8], costs[array.BFloat16])
	}
}

// TestDataIsCastOnceForManyReaders checks that data is cast into a copy in advance if each element meets rows of
// weights.
func TestDataIsCastOnceForManyReaders(t *testing.T) {
	s := sketch.New(castProduct(t, 512, array.BFloat16, array.BFloat16), sketch.Target(t, "x86-64-v3"), schedule.Strict)
	applied, err := s.Apply(s.Default())
	if err != nil {
		t.Fatal(err)
	}
	if trace := string(applied.Trace()); !strings.Contains(trace, "\nwiden 1 0 ") {
		t.Errorf("the data is cast for each row of weights:\n%s", trace)
	}
}
