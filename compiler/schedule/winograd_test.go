package schedule

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// TestFiltersComputeCorrelations: Aᵀ (G w · Bᵀ d) is the correlation of the inputs with the weights, for every filter
// there is.
func TestFiltersComputeCorrelations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	random := func(n int64) []float64 {
		v := make([]float64, n)
		for k := range v {
			v[k] = rng.NormFloat64()
		}
		return v
	}
	dot := func(a, b []float64) float64 {
		sum := 0.0
		for k := range a {
			sum += a[k] * b[k]
		}
		return sum
	}
	found := 0
	for _, shape := range filterShapes() {
		m, taps, stride := shape[0], shape[1], shape[2]
		f, ok := newFilter(m, taps, stride)
		if !ok {
			continue
		}
		found++
		a := f.products()
		if a != f.inputs(1) {
			t.Errorf("F(%d, %d)/%d has %d products for %d inputs", m, taps, stride, a, f.inputs(1))
		}
		in, out := coefficients(f.input, a, a), coefficients(f.output, m, a)
		d, w := random(a), random(taps)
		for y, row := range out {
			got := 0.0
			for k, c := range row {
				got += c * dot(f.weights[k], w) * dot(in[k], d)
			}
			if want := dot(w, d[int64(y)*stride:]); math.Abs(got-want) > 1e-11 {
				t.Errorf("F(%d, %d)/%d: output %d is %g, not %g", m, taps, stride, y, got, want)
			}
		}
	}
	if found < 12 {
		t.Errorf("only %d filters", found)
	}
}

// filterShapes returns outputs, taps and strides, more than there are filters.
func filterShapes() (list [][3]int64) {
	for m := range int64(6) {
		for taps := range int64(9) {
			for stride := range int64(4) {
				list = append(list, [3]int64{m, taps, stride})
			}
		}
	}
	return list
}

func TestGrowthOfRoundingErrors(t *testing.T) {
	for text, want := range map[string]float64{"winograd 0 2": 1.67, "winograd 0 4": 8.77, "winograd 0 4 2": 3.83, "unroll 0 3": 1} {
		s, err := Replay(parseWorkload(t, convText), []byte(traceHeader+"\n"+text+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.ErrorGrowth(); math.Abs(got-want) > 0.01 {
			t.Errorf("%s: %g, not %g", text, got, want)
		}
	}
}

// TestStridedWinogradGrowth: with stride 2 a filter of 3 taps has 2m+1 products, of which those of the odd inputs are
// direct.
func TestStridedWinogradGrowth(t *testing.T) {
	for m, want := range map[int64]float64{2: 1.18, 4: 3.31} {
		f, ok := newFilter(m, 3, 2)
		if !ok || f.products() != 2*m+1 || math.Abs(f.growth()*f.growth()-want) > 0.01 {
			t.Errorf("F(%d, 3)/2: %d products, growth %g", m, f.products(), f.growth()*f.growth())
		}
	}
}

// TestSharedSumsAreCountedOnce: Lavin and Gray's F(2, 3) takes 4 operations for 4 elements of input and 4 for 2 of
// output.
func TestSharedSumsAreCountedOnce(t *testing.T) {
	f, _ := newFilter(2, 3, 1)
	if in, out := f.input.operations(4), f.output.operations(2); in != 4 || out != 4 {
		t.Errorf("%d and %d operations", in, out)
	}
}

// TestAlgorithmsAreNamed by what a tile has, the kernel and the stride.
func TestAlgorithmsAreNamed(t *testing.T) {
	strided := strings.NewReplacer("f32[10,9,4]", "f32[17,16,4]", "(add i0 r0)", "(add (mul i0 2) r0)", "(add i1 r1)", "(add (mul i1 2) r1)")
	tall := strings.NewReplacer("f32[10,9,4]", "f32[17,9,4]", "(add i0 r0)", "(add (mul i0 2) r0)")
	for _, c := range []struct{ text, trace, want string }{
		{convText, "winograd 0 4", "F(4x4,3x3)"},
		{convText, "winograd 0 4 2", "F(4x2,3x3)"},
		{strided.Replace(convText), "winograd 0 2", "F(2x2,3x3)/2"},
		{tall.Replace(convText), "winograd 0 2", "F(2x2,3x3)/2x1"},
		{convText, "winograd 0 2 2 4", "F(2x2,3x3) in BF16"},
	} {
		trace := traceHeader + "\n" + c.trace + "\n"
		s, err := Replay(parseWorkload(t, c.text), []byte(trace))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Algorithms(); len(got) != 1 || got[0] != c.want || string(s.Trace()) != trace {
			t.Errorf("%s: %q, and the trace %q", c.want, got, s.Trace())
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
		"a map":              {"", "", "winograd 1 2", "stage 1 is not a sum of floats or of products of small integers"},
		"another size":       {"", "", "winograd 0 5", "stage 0 has no F(5x5, 3x3) with stride 1x1"},
		"twice":              {"", "", "winograd 0 2\nwinograd 0 2", "stage 0 is not a sum of floats"},
		"after a split":      {"", "", "split 0 0 2 0\nwinograd 0 2", "stage 0 was already scheduled"},
		"attached":           {"", "", "compute-at 0 1 0\nwinograd 0 2", "stage 0 was already scheduled"},
		"packed weights":     {"", "", "pack 0 0 0 0 1 0 0 2 0 0 3 0 0\nwinograd 0 2", "constant 0, which is already packed"},
		"too many numbers":   {"", "", "winograd 0 2 2 4 0", "winograd does not take 5 numbers"},
		"another type":       {"", "", "winograd 0 2 2 3", "factors of stage 0 cannot be rounded to f16"},
		"no type":            {"", "", "winograd 0 2 2 99", "99 is not a type"},
		"too few numbers":    {"", "", "winograd 0", "winograd does not take 1 numbers"},
		"stride 3":           {"(add i0 r0)", "(add (mul i0 3) r0)", "winograd 0 2", "with stride 3x1"},
		"dilation 2":         {"(add i0 r0)", "(add i0 (mul r0 2))", "winograd 0 2", "has a dilation"},
		"a mirrored image":   {"(add i0 r0)", "(sub 9 (add i0 r0))", "winograd 0 2", "is not a sum of axes"},
		"a transposed load":  {"[t0 (add i0 r0) (add i1 r1) r2]", "[t0 (add i0 r0) (add i0 r1) r2]", "winograd 0 2", "neither of the activation nor the output channels"},
		"both kernel axes":   {"(add i0 r0)", "(add i0 (add r0 r1))", "winograd 0 2", "mixes axes"},
		"a maximum":          {"sum t2", "max t2", "winograd 0 2", "is not a sum of floats"},
		"a sum of sums":      {"(mul", "(add", "winograd 0 2", "is not a sum of products"},
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
	_, err := New(parseWorkload(t, text)).Winograd(0, 4, 4)
	if err == nil || !strings.Contains(err.Error(), "shares constant 0 with stage 1") {
		t.Errorf("got %v", err)
	}
}

// openConv is convText with an open number of rows and of columns.
var openConv = strings.NewReplacer("constant t1", "input t1 i64[]<=8\ninput t2 i64[]<=7\nconstant t3",
	"sum t2 f32[8,7,5] over 3,3,4", "sum t4 f32[8,7,5] over 3,3,4 while i0 [t1], i1 [t2]", "[t1 r0", "[t3 r0",
	"map t3 f32[8,7,5]", "map t5 f32[8,7,5] while i0 [t1], i1 [t2]", "[t2 i0", "[t4 i0", "output t3", "output t5").Replace(convText)

// TestTilesOfOpenImagesHaveNoGaps: their number is that of an execution. What they read beyond the image is zero.
func TestTilesOfOpenImagesHaveNoGaps(t *testing.T) {
	s := New(parseWorkload(t, openConv))
	ids, err := s.Winograd(0, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	rows, columns := s.Workload.Inputs[1].At(), s.Workload.Inputs[2].At()
	fours := over(rows, 4)
	if got, want := s.Stages[ids.Product].Axes[0].Limit, expr.Simplify(expr.MulE(fours, over(columns, 4))); got == nil || !expr.Same(got, want) {
		t.Errorf("the limit of tiles is %v, want %v", got, want)
	}
	image := s.Stages[ids.Image]
	if got, want := image.Axes[0].Limit, expr.Simplify(expr.AddE(expr.MulE(fours, expr.I(4)), expr.I(2))); got == nil || !expr.Same(got, want) {
		t.Errorf("the limit of the image's rows is %v, want %v", got, want)
	}
	inside := func(at *expr.Var, size expr.Expr) expr.Expr { return expr.Bin(expr.Lt, at, expr.AddE(size, expr.I(2))) }
	across := image.Body.(*expr.Select)
	if down, ok := across.A.(*expr.Select); !ok || !expr.Same(across.Cond, inside(image.Axes[1], columns)) || !expr.Same(down.Cond, inside(image.Axes[0], rows)) {
		t.Errorf("the image is %v", image.Body)
	}
}

func TestWinogradRefusesSumsOverOpenAxes(t *testing.T) {
	text := strings.NewReplacer("constant t1", "input t1 i64[]<=4\nconstant t2", "sum t2 f32[8,7,5] over 3,3,4", "sum t3 f32[8,7,5] over 3,3,4 while r2 [t1]",
		"[t1 r0", "[t2 r0", "map t3", "map t4", "[t2 i0", "[t3 i0", "output t3", "output t4").Replace(convText)
	_, err := New(parseWorkload(t, text)).Winograd(0, 4, 4)
	if err == nil || !strings.Contains(err.Error(), "sums over an open axis") {
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
	if _, err := New(workload).Winograd(0, 4, 4); err == nil || !strings.Contains(err.Error(), "is too large") {
		t.Errorf("got %v", err)
	}
}

func TestStorageAlignIsBounded(t *testing.T) {
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

func TestLevelThatAScheduleNeeds(t *testing.T) {
	for trace, want := range map[string]Numerics{"unroll 0 3\n": Strict, "winograd 0 4\n": Default} {
		s, err := Replay(parseWorkload(t, convText), []byte(traceHeader+"\n"+trace))
		if err != nil {
			t.Fatal(err)
		}
		if s.Numerics() != want {
			t.Errorf("%q needs %v, want %v", trace, s.Numerics(), want)
		}
	}
}
