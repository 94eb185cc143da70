package tolerance_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/tolerance"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// product returns one of 64 terms whose results are stored as a type, and then read again or not.
func product(t *testing.T, d array.DType, again bool) *expr.Workload {
	t.Helper()
	a, b := expr.NewInput("a", array.BFloat16, 4, 64), expr.NewConstant("b", array.BFloat16, 64, 8)
	wide := func(e expr.Expr) expr.Expr { return expr.To(array.Float32, e) }
	sum := expr.ReduceOver("sum", expr.Sum, []int64{4, 8}, []int64{64}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(wide(a.At(i[0], r[0])), wide(b.At(r[0], i[1])))
	})
	out := sum
	if d != array.Float32 {
		out = expr.Compute("out", sum.Shape, func(i []expr.Expr) expr.Expr { return expr.To(d, sum.At(i...)) })
	}
	outs := []*expr.Tensor{out}
	if again {
		outs = append(outs, expr.Compute("twice", sum.Shape, func(i []expr.Expr) expr.Expr { return expr.AddE(wide(out.At(i...)), wide(out.At(i...))) }))
	}
	w, err := expr.NewWorkload(outs)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestToleranceOfNarrowResults: sums are in float32 for any type of factors and results, so results that are
// several units in the last place apart are wrong. Each output has its own tolerance.
func TestToleranceOfNarrowResults(t *testing.T) {
	sums := 0x1p-24 * (64 + 4*8)
	for _, c := range []struct {
		name     string
		d        array.DType
		again    bool
		rounding []float64
	}{
		{"float32", array.Float32, false, []float64{0}},
		{"bfloat16", array.BFloat16, false, []float64{4 * 0x1p-8}},
		{"float16", array.Float16, false, []float64{4 * 0x1p-11}},
		{"bfloat16 that is read again", array.BFloat16, true, []float64{4 * 0x1p-8, 16 * 0x1p-8}},
	} {
		for k, got := range tolerance.Tolerances(product(t, c.d, c.again)) {
			if got.Sums != sums || math.Abs(got.Rounding-c.rounding[k]) > 1e-12 {
				t.Errorf("%s: output %d has %+v, want %g and %g", c.name, k, got, sums, c.rounding[k])
			}
		}
	}
}

// TestMovedValuesAreNotRounded: padding, selection, maxima and widening are exact.
func TestMovedValuesAreNotRounded(t *testing.T) {
	const d = array.BFloat16
	x, y := expr.NewInput("x", d, 8), expr.NewInput("y", array.Float32, 8)
	wide := func(e expr.Expr) expr.Expr { return expr.To(array.Float32, e) }
	for name, c := range map[string]struct {
		body   func(i expr.Expr) expr.Expr
		rounds bool
	}{
		"a copy":                       {func(i expr.Expr) expr.Expr { return x.At(i) }, false},
		"padding":                      {func(i expr.Expr) expr.Expr { return expr.Sel(expr.Bin(expr.Lt, i, expr.I(4)), x.At(i), expr.Zero(d)) }, false},
		"padding in float32":           {func(i expr.Expr) expr.Expr { return expr.To(d, expr.MaxE(wide(x.At(i)), expr.F(array.Float32, 0))) }, false},
		"the other sign":               {func(i expr.Expr) expr.Expr { return expr.Un(expr.Neg, x.At(i)) }, false},
		"a value in float32":           {func(i expr.Expr) expr.Expr { return expr.To(d, y.At(i)) }, true},
		"a value in float32, chosen":   {func(i expr.Expr) expr.Expr { return expr.MaxE(expr.To(d, y.At(i)), x.At(i)) }, true},
		"arithmetic":                   {func(i expr.Expr) expr.Expr { return expr.To(d, expr.AddE(wide(x.At(i)), wide(x.At(i)))) }, true},
		"arithmetic in 16 bits":        {func(i expr.Expr) expr.Expr { return expr.AddE(x.At(i), x.At(i)) }, true},
		"an integer of more bits":      {func(i expr.Expr) expr.Expr { return expr.To(d, i) }, true},
		"by way of fewer bits":         {func(i expr.Expr) expr.Expr { return expr.To(d, expr.To(array.Float16, y.At(i))) }, true},
		"results that need no 16 bits": {func(i expr.Expr) expr.Expr { return expr.AddE(wide(x.At(i)), y.At(i)) }, false},
	} {
		out := expr.Compute("out", []int64{8}, func(i []expr.Expr) expr.Expr { return c.body(i[0]) })
		if got := tolerance.IsRounded(out); got != c.rounds {
			t.Errorf("%s rounds: %v", name, got)
		}
	}
	largest := expr.ReduceOver("largest", expr.Maximum, []int64{2}, []int64{4}, func(i, r []expr.Expr) expr.Expr {
		return x.At(expr.AddE(expr.MulE(i[0], expr.I(4)), r[0]))
	})
	if tolerance.IsRounded(largest) {
		t.Error("a maximum rounds")
	}
}

// TestZerosAreWrong checks for all tasks of models with 16-bit factors that zeros in place of outputs exceed the
// tolerance, for any claimed algorithm.
func TestZerosAreWrong(t *testing.T) {
	tasks := modeltest.NarrowTasks(t, array.BFloat16)
	m, err := modelzoo.Build("resnet-18", modelzoo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := frontend.Import(m, frontend.Options{Storage: array.Storage{Type: array.BFloat16}})
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range p.Tasks {
		tasks = append(tasks, task.Workload)
	}
	for _, w := range tasks {
		for k, o := range tolerance.Tolerances(w) {
			if direct, largest := o.Times(1), o.Times(math.Inf(1)); direct > 0.08 || largest > 0.25 || w.Outputs[k].DType == array.Float32 && o.Rounding > 0x1p-4 {
				t.Errorf("an output in %v may be off by %g, with other algorithms by %g:\n%s", w.Outputs[k].DType, direct, largest, w.Text())
			}
		}
	}
}

// TestSumsOfOneOutputAreNotThoseOfAnother: an output without long sums is exact, regardless of the kernel's other
// outputs.
func TestSumsOfOneOutputAreNotThoseOfAnother(t *testing.T) {
	x := expr.NewInput("x", array.Float32, 4, 4096)
	sum := expr.ReduceOver("sum", expr.Sum, []int64{4}, []int64{4096}, func(i, r []expr.Expr) expr.Expr { return x.At(i[0], r[0]) })
	twice := expr.Compute("twice", x.Shape, func(i []expr.Expr) expr.Expr { return expr.AddE(x.At(i...), x.At(i...)) })
	w, err := expr.NewWorkload([]*expr.Tensor{sum, twice})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tolerance.Tolerances(w), []float64{0x1p-24 * (64 + 4*64), 0x1p-24 * 68}; got[0].Sums != want[0] || got[1].Sums != want[1] {
		t.Errorf("the tolerances are %+v, want %v", got, want)
	}
}

// TestErrorsOfSumsCountInFullBehindBoundedFunctions: sums of 512 products are near 20, their hyperbolic tangents at
// most 1, and both have the same absolute errors near 0. Outputs that grow with the sums, too, show their size.
func TestErrorsOfSumsCountInFullBehindBoundedFunctions(t *testing.T) {
	const terms, columns = 512, 512
	x, y := expr.NewInput("x", array.Float32, 1, terms), expr.NewConstant("y", array.Float32, terms, columns)
	sum := expr.ReduceOver("sum", expr.Sum, []int64{1, columns}, []int64{terms}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(x.At(i[0], r[0]), y.At(r[0], i[1]))
	})
	tolerances := func(f func(sum expr.Expr) expr.Expr) float64 {
		w, err := expr.NewWorkload([]*expr.Tensor{expr.Compute("out", sum.Shape, func(i []expr.Expr) expr.Expr { return f(sum.At(i...)) })})
		if err != nil {
			t.Fatal(err)
		}
		return tolerance.Tolerances(w)[0].Sums
	}
	direct := tolerances(func(e expr.Expr) expr.Expr { return e })
	tanh := func(e expr.Expr) expr.Expr { return expr.Un(expr.Tanh, e) }
	if got := tolerances(func(e expr.Expr) expr.Expr { return expr.MulE(e, tanh(e)) }); got != direct {
		t.Errorf("the tolerance is %g for x tanh x, and %g for x", got, direct)
	}
	allowed, worst := tolerances(tanh), 0.0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		a := make([]float32, terms)
		for k := range a {
			a[k] = 2*rng.Float32() - 1
		}
		for range columns {
			narrow, exact := float32(0), 0.0
			for _, v := range a {
				b := 2*rng.Float32() - 1
				narrow += v * b
				exact += float64(v) * float64(b)
			}
			worst = max(worst, math.Abs(math.Tanh(float64(narrow))-math.Tanh(exact)))
		}
	}
	if worst > allowed/4 || worst < direct/10 {
		t.Errorf("tangents of sums in float32 are off by up to %g, and %g is allowed (%g for the sums)", worst, allowed, direct)
	}
}

// TestNoAlgorithmNeedsMoreThanAJudgeAllows: the formats of matrix instructions have the largest error growth.
func TestNoAlgorithmNeedsMoreThanAJudgeAllows(t *testing.T) {
	largest := 1.0
	for f := range schedule.WarpgroupI8 + 1 {
		if !f.Takes(array.Float32) {
			continue
		}
		s := schedule.New(kerneltest.Product(t, 64, 64, 64))
		g := s.Stages[0]
		if err := s.Tensorize(0, g.Leaves[len(g.Leaves)-1].ID, f); err != nil {
			t.Fatal(err)
		}
		growth := s.ErrorGrowth()
		if growth > tolerance.MaxGrowth {
			t.Errorf("%v needs %g times the tolerance, and %d are allowed", f, growth, tolerance.MaxGrowth)
		}
		largest = max(largest, growth)
	}
	if largest < 1<<12 {
		t.Errorf("no format needs more than %g times the tolerance", largest)
	}
}

// TestIntegersMayDifferWhereTheyAreRoundedFromSumsOfFloats: an order of terms decides which side of a half a sum is
// on.
func TestIntegersMayDifferWhereTheyAreRoundedFromSumsOfFloats(t *testing.T) {
	const text = "tilth-workload 1\ninput t0 %[1]s[49,8]\nsum t1 %[2]s[8] over 49 = %[3]s\nmap t2 u8[8] = (cast u8 (cast i32 (round (mul %[4]s 0x1p-02:f32))))\noutput t2\n"
	for _, c := range []struct {
		in, sum, term, value string
		steps                float64
	}{
		{"f32", "f32", "[t0 r0 i0]", "[t1 i0]", 2},
		{"i8", "i32", "(cast i32 [t0 r0 i0])", "(cast f32 [t1 i0])", 0},
	} {
		w, err := expr.Parse(fmt.Sprintf(text, c.in, c.sum, c.term, c.value))
		if err != nil {
			t.Fatal(err)
		}
		if got := tolerance.Tolerances(w)[0].OfIntegers(1, 200) * 200; got != c.steps {
			t.Errorf("bytes of sums in %s may be off by %g", c.sum, got)
		}
	}
}

func TestIntegersAreExactUnlessAnAlgorithmSumsThemInFloats(t *testing.T) {
	o := tolerance.Tolerance{}
	if got := o.OfIntegers(1, 255); got != 0 {
		t.Errorf("direct sums may be off by %g", got)
	}
	if got := o.OfIntegers(8.8, 255) * 255; got < 1 || got >= 3 {
		t.Errorf("results of eight bits may be off by %g steps", got)
	}
	if got := o.OfIntegers(8.8, 1e6) * 1e6; got < 2 || got > 100 {
		t.Errorf("sums of a million may be off by %g", got)
	}
}
