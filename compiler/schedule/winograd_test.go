package schedule

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// TestFiltersComputeCorrelations: Aᵀ (G w · Bᵀ d) is the correlation of the inputs with the weights.
func TestFiltersComputeCorrelations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for m, f := range filters {
		a := m + 2
		in, out := coefficients(f.input, a, a), coefficients(f.output, m, a)
		d, w := make([]float64, a), [3]float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		for k := range d {
			d[k] = rng.NormFloat64()
		}
		for y, row := range out {
			got := 0.0
			for k, c := range row {
				weight, data := 0.0, 0.0
				for i, g := range f.weights[k] {
					weight += g * w[i]
				}
				for i, b := range in[k] {
					data += b * d[i]
				}
				got += c * weight * data
			}
			if want := d[y]*w[0] + d[y+1]*w[1] + d[y+2]*w[2]; math.Abs(got-want) > 1e-12 {
				t.Errorf("F(%d, 3): output %d is %g, not %g", m, y, got, want)
			}
		}
	}
}

func TestGrowthOfRoundingErrors(t *testing.T) {
	for m, want := range map[int64]float64{2: 1.67, 3: 1, 4: 8.8} {
		if got := WinogradGrowth(m); math.Abs(got-want) > 0.1 {
			t.Errorf("F(%d, 3): %g, not %g", m, got, want)
		}
	}
}

// convText is a convolution with a residual; %STRIDE, %WEIGHTS and the like are replaced in the cases below.
const convText = `tilth-workload 1
input t0 f32[10,9,4]
constant t1 f32[3,3,4,5]
sum t2 f32[8,7,5] over 3,3,4 = (mul [t0 (add i0 r0) (add i1 r1) r2] [t1 r0 r1 r2 i2])
map t3 f32[8,7,5] = (max [t2 i0 i1 i2] 0x0p+00:f32)
output t3
`

func parseWorkload(t *testing.T, text string) *expr.Workload {
	t.Helper()
	w, err := expr.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestWinogradRefusesOtherReductions has a change of the convolution or a trace for each reason to refuse.
func TestWinogradRefusesOtherReductions(t *testing.T) {
	cases := map[string]struct{ old, new, trace, want string }{
		"no such stage":      {"", "", "winograd 7 2", "there is no stage 7"},
		"a map":              {"", "", "winograd 1 2", "stage 1 is no sum of floats"},
		"another size":       {"", "", "winograd 0 3", "there is no F(3x3, 3x3)"},
		"twice":              {"", "", "winograd 0 2\nwinograd 0 2", "stage 0 is no sum of floats"},
		"after a split":      {"", "", "split 0 0 2 0\nwinograd 0 2", "stage 0 was already scheduled"},
		"attached":           {"", "", "compute-at 0 1 0\nwinograd 0 2", "stage 0 was already scheduled"},
		"packed weights":     {"", "", "pack 0 0 0 0 1 0 0 2 0 0 3 0 0\nwinograd 0 2", "constant 0, which is already packed"},
		"stride 2":           {"(add i0 r0)", "(add (mul i0 2) r0)", "winograd 0 2", "has a stride or a dilation"},
		"dilation 2":         {"(add i0 r0)", "(add i0 (mul r0 2))", "winograd 0 2", "has a stride or a dilation"},
		"a transposed load":  {"[t0 (add i0 r0) (add i1 r1) r2]", "[t0 (add i0 r0) (add i0 r1) r2]", "winograd 0 2", "neither of the activation nor the output channels"},
		"both kernel axes":   {"(add i0 r0)", "(add i0 (add r0 r1))", "winograd 0 2", "mixes axes"},
		"a maximum":          {"sum t2", "max t2", "winograd 0 2", "is no sum of floats"},
		"a sum of sums":      {"(mul", "(add", "winograd 0 2", "is no sum of products"},
		"an input as weight": {"constant t1", "input t1", "winograd 0 2", "does not multiply an activation by a constant"},
		"a group":            {"r1) r2]", "r1) (floordiv i2 2)]", "winograd 0 2", "input channels"},
		"an offset weight":   {"[t1 r0 r1", "[t1 (sub 2 r0) r1", "winograd 0 2", "index its weights by each reduction axis alone"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := parseWorkload(t, strings.Replace(convText, c.old, c.new, 1))
			_, err := Replay(w, []byte(traceHeader+"\n"+c.trace+"\n"))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestWinogradKeepsWhatElseReadsTheWeights(t *testing.T) {
	text := strings.Replace(convText, "0x0p+00:f32", "[t1 0 0 0 i2]", 1)
	_, err := New(parseWorkload(t, text)).Winograd(0, 4)
	if err == nil || !strings.Contains(err.Error(), "shares constant 0 with stage 1") {
		t.Errorf("got %v", err)
	}
}

// TestWinogradTilesHaveALimit: overhang makes tiny images of huge batches much larger.
func TestWinogradTilesHaveALimit(t *testing.T) {
	d := array.Float32
	x, w := expr.NewInput("x", d, 1<<20, 3, 3, 256), expr.NewConstant("w", d, 3, 3, 256, 8)
	conv := expr.ReduceOver("conv", expr.Sum, []int64{1 << 20, 1, 1, 8}, []int64{3, 3, 256}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(x.At(i[0], expr.AddE(i[1], r[0]), expr.AddE(i[2], r[1]), r[2]), w.At(r[0], r[1], r[2], i[3]))
	})
	workload, err := expr.NewWorkload([]*expr.Tensor{conv})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(workload).Winograd(0, 4); err == nil || !strings.Contains(err.Error(), "is too large") {
		t.Errorf("got %v", err)
	}
}

func TestSkewIsBounded(t *testing.T) {
	cases := map[string]string{
		"skew 1 16":            "stage 1 is an output",
		"skew 0 0":             "is not between 1 and 1024",
		"skew 0 1025":          "is not between 1 and 1024",
		"skew 0 16\nskew 0 16": "stage 0 is already skewed",
		"skew 5 16":            "there is no stage 5",
	}
	for trace, want := range cases {
		_, err := Replay(parseWorkload(t, convText), []byte(traceHeader+"\n"+trace+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", trace, err, want)
		}
	}
}

// TestTheLevelOfATrace: what a trace's text tells is what its schedule needs.
func TestTheLevelOfATrace(t *testing.T) {
	for trace, want := range map[string]Numerics{"unroll 0 3\n": Strict, "winograd 0 4\n": Default} {
		text := []byte(traceHeader + "\n" + trace)
		s, err := Replay(parseWorkload(t, convText), text)
		if err != nil {
			t.Fatal(err)
		}
		if got := TraceNumerics(text); got != want || s.Numerics() != want {
			t.Errorf("%q: the text says %v, the schedule %v", trace, got, s.Numerics())
		}
	}
}
