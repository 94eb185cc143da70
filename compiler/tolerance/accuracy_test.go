package tolerance_test

import (
	"math"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/gpusim"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/tolerance"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

func TestRelative(t *testing.T) {
	floats := func(v ...float32) *array.Array { return array.FromFloat32(v, int64(len(v))) }
	ints := func(v ...int64) *array.Array { return array.FromInt64(v, int64(len(v))) }
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, c := range map[string]struct {
		got, want *array.Array
		relative  float64
	}{
		"equal":                   {floats(1, 2), floats(1, 2), 0},
		"relative to the largest": {floats(1.5, -4), floats(1, -4), 0.125},
		"NaN equals NaN":          {floats(nan, 1), floats(nan, 1), 0},
		"NaN":                     {floats(nan, 1), floats(1, 1), math.Inf(1)},
		"infinity":                {floats(inf, 1), floats(1, 1), math.Inf(1)},
		"equal infinities":        {floats(inf, 2.5), floats(inf, 2), 0.25},
		"zeros":                   {floats(1e-9), floats(0), math.Inf(1)},
		"integers":                {ints(1, 2, 3, 5), ints(1, 2, 3, 4), 0.25},
		"another shape":           {floats(1), floats(1, 1), math.Inf(1)},
		"another type":            {ints(1), floats(1), math.Inf(1)},
		"nothing":                 {nil, floats(1), math.Inf(1)},
	} {
		if got := tolerance.Relative(c.got, c.want); math.Abs(got-c.relative) > 1e-9 || math.IsInf(got, 0) != math.IsInf(c.relative, 0) {
			t.Errorf("%s: %g, want %g", name, got, c.relative)
		}
	}
}

// chained returns a model of three products, stored as a type.
func chained(t *testing.T, storage array.DType) *program.Program {
	t.Helper()
	m := modeltest.New().Input("x", 16, 64)
	last := "x"
	for _, k := range []string{"a", "b", "c"} {
		m = m.Known("w"+k, modeltest.Wave(0, 1, 64, 64)).Node(k + " = MatMul " + last + " w" + k).Node("r" + k + " = Relu " + k)
		last = "r" + k
	}
	p, err := frontend.Import(m.Output(last), frontend.Options{Storage: array.Storage{Type: storage}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestBoundIsThatOfWhatIsRounded checks that the bound is 0 without rounding, and otherwise covers the error by a
// factor of less than a hundred.
func TestBoundIsThatOfWhatIsRounded(t *testing.T) {
	on, err := gpusim.Backend{}.Target("gpu-sim", 1)
	if err != nil {
		t.Fatal(err)
	}
	bound := func(p *program.Program, n schedule.Numerics) float64 {
		b, err := tolerance.Bound(p, func(w *expr.Workload) (*schedule.Schedule, error) {
			s := gpusim.Backend{}.Space(w, on, n)
			return s.Apply(s.Default())
		})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	plain, narrow := chained(t, array.Invalid), chained(t, array.BFloat16)
	if b := bound(plain, schedule.Strict); b != 0 {
		t.Errorf("the bound of nothing is %g", b)
	}
	allowed, off := bound(narrow, schedule.Strict), tolerance.Relative(modeltest.Run(t, narrow)["rc"], modeltest.Run(t, plain)["rc"])
	if off > allowed || off < allowed/100 {
		t.Errorf("outputs are off by %g, the bound is %g", off, allowed)
	}
	if b := bound(plain, schedule.Fast); b <= 0 {
		t.Errorf("the bound of products that instructions round is %g", b)
	}
}

// TestBoundsOfModelsAreTight checks that errors of products accumulate along the model, and that data movement such
// as padding, and parallel residuals, add nothing.
func TestBoundsOfModelsAreTight(t *testing.T) {
	direct := func(w *expr.Workload) (*schedule.Schedule, error) { return schedule.New(w), nil }
	bound := func(m modeltest.Model) float64 {
		p, err := frontend.Import(m.Output("y"), frontend.Options{Storage: array.Storage{Type: array.BFloat16}})
		if err != nil {
			t.Fatal(err)
		}
		b, err := tolerance.Bound(p, direct)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	const one = 4 * 0x1p-8 // of a rounding
	image := func() modeltest.Model {
		return modeltest.New().Input("x", 1, 8, 6, 6).Node("r = Erf x").Constant("w", 8, 8, 3, 3)
	}
	for name, c := range map[string]struct {
		model modeltest.Model
		want  float64
	}{
		"two factors":         {image().Node("y = Conv r w"), math.Sqrt2},
		"padding":             {image().Node("y = Conv r w", modeltest.Same3x3), math.Sqrt2},
		"a sum of both":       {image().Node("c = Conv r w", modeltest.Same3x3).Node("y = Add c r"), math.Sqrt2},
		"one after another":   {image().Node("c = Conv r w").Node("d = Relu c").Constant("v", 8, 8, 3, 3).Node("y = Conv d v"), 2},
		"the same, squared":   {image().Node("c = Conv r w").Node("y = Mul c c"), 2},
		"more than a tenth":   {image().Node("c = Conv r w").Node("d = Mul c c").Node("e = Mul d d").Node("f = Mul e e").Node("g = Mul f f").Node("y = Mul g g"), tolerance.Largest / one},
		"nothing is a factor": {image().Node("y = Relu r"), 0},
	} {
		if got := bound(c.model) / one; math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %g roundings, want %g", name, got, c.want)
		}
	}
}
