package layout_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// narrow imports a model with factors of products in bfloat16.
func narrow(t *testing.T, m *onnx.Model) *program.Program {
	t.Helper()
	return narrowAs(t, m, array.BFloat16)
}

func narrowAs(t *testing.T, m *onnx.Model, storage array.DType) *program.Program {
	t.Helper()
	return stored(t, m, array.Storage{Type: storage})
}

func stored(t *testing.T, m *onnx.Model, storage array.Storage) *program.Program {
	t.Helper()
	p, err := frontend.Import(m, frontend.Options{Verify: true, Storage: storage})
	if err != nil {
		t.Fatal(err)
	}
	modeltest.Check(t, p)
	return p
}

// storedNarrow names the values that a program stores in 16 bits and lie in no other's memory, in alphabetical order.
func storedNarrow(p *program.Program) (names []string) {
	for _, v := range p.Values {
		if (v.DType == array.BFloat16 || v.DType == array.Float16) && v.Alias < 0 {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return names
}

func TestFactorsOfProductsAreStoredInHalfTheBytes(t *testing.T) {
	pool := []*onnx.Attribute{modeltest.Ints("kernel_shape", 2, 2), modeltest.Ints("strides", 2, 2)}
	image := func() modeltest.Model {
		return modeltest.New().Input("x", 1, 8, 6, 6).Constant("w", 8, 8, 3, 3).Node("c = Conv x w", modeltest.Same3x3).Node("r = Relu c")
	}
	rows := func() modeltest.Model {
		return modeltest.New().Input("x", 4, 32).Constant("w", 32, 32).Node("a = MatMul x w")
	}
	for _, c := range []struct {
		name  string
		model *onnx.Model
		want  []string
	}{
		{"the model's input and output stay", rows().Output("a"), []string{"w"}},
		{"what a product reads", rows().Node("b = Relu a").Constant("v", 32, 8).Node("y = MatMul b v").Output("y"), []string{"b", "v", "w"}},
		{"an output that a product reads stays", rows().Node("b = Relu a").Constant("v", 32, 8).Node("y = MatMul b v").Output("y", "b"),
			[]string{"v", "w"}},
		{"what normalisation reads stays", rows().Node("s = LogSoftmax a").Constant("v", 32, 8).Node("y = MatMul s v").Output("y"), []string{"s", "v", "w"}},
		{"sums of few terms need all bits", modeltest.New().Input("x", 4, 1).Constant("w", 1, 32).Node("r = Neg x").Node("a = MatMul r w").Output("a"), nil},
		{"what another reads, too, is read as it is stored", image().Constant("v", 8, 8, 3, 3).Node("d = Conv r v", modeltest.Same3x3).
			Node("s = Add d r").Output("s"), []string{"r", "v[2 3 1 0]", "w[2 3 1 0]"}},
		{"what is pooled first", image().Node("p = MaxPool r", pool...).Constant("v", 8, 8, 3, 3).Node("y = Conv p v", modeltest.Same3x3).Output("y"),
			[]string{"p", "r", "v[2 3 1 0]", "w[2 3 1 0]"}},
		{"what is averaged first stays", image().Node("p = AveragePool r", pool...).Constant("v", 8, 8, 3, 3).Node("y = Conv p v", modeltest.Same3x3).
			Output("y"), []string{"p", "v[2 3 1 0]", "w[2 3 1 0]"}},
		{"a depthwise convolution's weights stay", image().Constant("v", 8, 1, 3, 3).Node("y = Conv r v", modeltest.Same3x3, modeltest.Int("group", 8)).
			Output("y"), []string{"r", "w[2 3 1 0]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := storedNarrow(narrow(t, c.model)); !slices.Equal(got, c.want) {
				t.Errorf("in 16 bits are %q, want %q", got, c.want)
			}
		})
	}
}

// TestOnlyConstantsAreStoredSoWhereThatIsAsked, whatever multiplies activations.
func TestOnlyConstantsAreStoredSoWhereThatIsAsked(t *testing.T) {
	m := modeltest.New().Input("x", 4, 32).Constant("w", 32, 32).Node("a = MatMul x w").Node("b = Relu a").Constant("v", 32, 8).
		Node("y = MatMul b v").Output("y")
	p := stored(t, m, array.Storage{Type: array.BFloat16, Constants: true})
	if got, want := storedNarrow(p), []string{"v", "w"}; !slices.Equal(got, want) {
		t.Errorf("in 16 bits are %q, want %q", got, want)
	}
}

// TestPartsAreStoredAsTheWholeIs: the operands of a concatenation lie in its memory, and heads in that of their
// projection.
func TestPartsAreStoredAsTheWholeIs(t *testing.T) {
	p := narrow(t, modeltest.New().Input("x", 1, 8, 6, 6).Constant("w", 16, 8, 3, 3).Constant("v", 16, 8, 1, 1).
		Node("a = Conv x w", modeltest.Same3x3).Node("b = Conv x v").Node("ar = Relu a").Node("j = Concat ar b", modeltest.Int("axis", 1)).
		Constant("u", 8, 32, 1, 1).Node("y = Conv j u").Output("y"))
	for _, v := range p.Values {
		if (v.Name == "ar" || v.Name == "b" || v.Name == "j") && v.DType != array.BFloat16 {
			t.Errorf("%s is stored as %v", v.Name, v.DType)
		}
	}
}

// TestConstantsAreRoundedOnce, to the nearest.
func TestConstantsAreRoundedOnce(t *testing.T) {
	w := modeltest.Wave(0, 3, 32, 8)
	p := narrow(t, modeltest.New().Input("x", 4, 32).Known("w", w).Node("y = MatMul x w").Output("y"))
	for _, v := range p.Values {
		if v.Data == nil {
			continue
		}
		if v.Data.DType != v.DType || v.DType != array.BFloat16 || int64(len(v.Data.Data)) != 2*w.Len() {
			t.Fatalf("the weights are %v in %d bytes", v.Data.DType, len(v.Data.Data))
		}
		for i := range w.Len() {
			if d := math.Abs(v.Data.Float(i) - w.Float(i)); d > 0x1p-8*math.Abs(w.Float(i)) {
				t.Errorf("weight %d is %g, and was %g", i, v.Data.Float(i), w.Float(i))
			}
		}
	}
}

// TestNarrowFactorsLoseLittle: within a few of their rounding errors of the model's answer.
func TestNarrowFactorsLoseLittle(t *testing.T) {
	m := modeltest.New().Input("x", 1, 8, 9, 9).Known("w", modeltest.Wave(0, 1, 32, 8, 3, 3)).Node("c = Conv x w", modeltest.Same3x3).Node("r = Relu c").
		Node("p = MaxPool r", modeltest.Ints("kernel_shape", 2, 2)).Known("v", modeltest.Wave(0, 1, 16, 32, 1, 1)).Node("d = Conv p v").
		Node("f = Flatten d").Known("u", modeltest.Wave(0, 1, 1024, 10)).Node("y = Gemm f u").Output("y")
	want := modeltest.Run(t, modeltest.Import(t, m))["y"]
	for storage, unit := range map[array.DType]float64{array.BFloat16: 0x1p-9, array.Float16: 0x1p-12} {
		got := modeltest.Run(t, narrowAs(t, m, storage))["y"]
		largest, worst := 0.0, 0.0
		for i := range want.Len() {
			largest, worst = max(largest, math.Abs(want.Float(i))), max(worst, math.Abs(got.Float(i)-want.Float(i)))
		}
		if got.DType != array.Float32 || worst == 0 || worst > 8*unit*largest {
			t.Errorf("stored as %v, outputs in %v are off by %g of %g", storage, got.DType, worst, largest)
		}
	}
}

// TestConstantsBeyondATypeStayAsTheyAre: float16 ends at 65504.
func TestConstantsBeyondATypeStayAsTheyAre(t *testing.T) {
	m := modeltest.New().Input("x", 4, 32).Known("w", modeltest.Wave(0, 1e5, 32, 32)).Node("a = MatMul x w").Node("b = Relu a").
		Known("v", modeltest.Wave(0, 6e4, 32, 8)).Node("y = MatMul b v").Output("y")
	for storage, want := range map[array.DType][]string{array.Float16: {"b", "v"}, array.BFloat16: {"b", "v", "w"}} {
		if got := storedNarrow(narrowAs(t, m, storage)); !slices.Equal(got, want) {
			t.Errorf("as %v are stored %q, want %q", storage, got, want)
		}
	}
}
