package rewrite_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// inIntegers imports a model with weights of so many bits; counts are of those that are, and of all.
func inIntegers(t *testing.T, m *onnx.Model, bits int64) (p *program.Program, counts [2]int) {
	t.Helper()
	return importedAs(t, m, array.Storage{WeightBits: bits})
}

func importedAs(t *testing.T, m *onnx.Model, as array.Storage) (p *program.Program, counts [2]int) {
	t.Helper()
	p, err := frontend.Import(m, frontend.Options{Verify: true, Storage: as,
		Quantised: func(quantised, all int) { counts = [2]int{quantised, all} }})
	if err != nil {
		t.Fatal(err)
	}
	modeltest.Check(t, p)
	return p, counts
}

// signed has made-up elements of both signs.
func signed(shape ...int64) *array.Array { return modeltest.Wave(0, 1, shape...) }

// rounded are weights [rows, columns] of which each block along an axis is rounded: in 8 bits to steps of a 127th of
// its largest element, in 4 bits to steps in float16 of which that is the eighth to one side, and 7 are to the other.
// An element is off by maxSteps of largestStep at most.
func rounded(w *array.Array, axis int, block, bits int64) (made *array.Array, maxSteps, largestStep float64) {
	made = array.New(array.Float32, w.Shape...)
	columns := w.Len() / w.Shape[0]
	largest := map[[2]int64]float64{}
	blockOf := func(i int64) [2]int64 {
		at := [2]int64{i / columns, i % columns}
		at[axis] /= block
		return at
	}
	for i := range w.Len() {
		if v := w.Float(i); math.Abs(v) > math.Abs(largest[blockOf(i)]) {
			largest[blockOf(i)] = v
		}
	}
	divisor, limit, stored, maxSteps := 127.0, 127.0, array.Float32, 0.5
	if bits == 4 {
		divisor, limit, stored, maxSteps = -8, 7, array.Float16, 1
	}
	for i := range w.Len() {
		step := array.FromFloat32([]float32{float32(largest[blockOf(i)] / divisor)})
		integer := min(math.RoundToEven(w.Float(i)/step.Float(0)), limit)
		made.SetFloat(i, integer*step.As(stored).Float(0))
		largestStep = max(largestStep, math.Abs(step.Float(0)))
	}
	return made, maxSteps, largestStep
}

// TestWeightsInIntegersMeanTheirRoundedFloats, wherever they are used, and results are off by what rounding explains.
func TestWeightsInIntegersMeanTheirRoundedFloats(t *testing.T) {
	rows := func() modeltest.Model { return modeltest.New().Input("x", 3, 64) }
	places := func() modeltest.Model {
		return rows().Known("many", array.FromFloat32([]float32{71})).Node("f = Mul x many").Node("at = Cast f", modeltest.Int("to", 7))
	}
	for _, c := range []struct {
		name  string
		model modeltest.Model
		w     *array.Array
		// axis is the one that is summed over.
		axis int
		uses int
	}{
		{"a product", rows().Node("y = MatMul x w"), signed(64, 72), 0, 1},
		{"a dense layer", rows().Constant("b", 72).Node("y = Gemm x w b"), signed(64, 72), 0, 1},
		{"a dense layer that transposes", rows().Constant("b", 72).Node("y = Gemm x w b", modeltest.Int("transB", 1)), signed(72, 64), 1, 1},
		{"a convolution by single elements", modeltest.New().Input("x", 2, 64, 3, 5).Constant("b", 256).Node("r = Relu x").Node("c = Conv r w b").Node("y = Relu c"),
			signed(256, 64, 1, 1), 1, 1},
		{"such a convolution of sequences", modeltest.New().Input("x", 2, 64, 7).Node("y = Conv x w"), signed(256, 64, 1), 1, 1},
		{"a table", places().Node("y = Gather w at"), signed(72, 64), 1, 1},
		{"a product twice", rows().Node("h = MatMul x w").Node("r = Relu h").Node("y = MatMul r w"), signed(64, 64), 0, 1},
		{"a table that scores, too", places().Node("e = Gather w at").Node("m = ReduceMean e", modeltest.Ints("axes", 1), modeltest.Int("keepdims", 0)).
			Node("t = Transpose w", modeltest.Ints("perm", 1, 0)).Node("y = MatMul m t"), signed(72, 64), 1, 2},
	} {
		for _, bits := range []int64{8, 4} {
			if bits == 4 && strings.Contains(c.name, "table") {
				continue // which is in 8 bits
			}
			t.Run(c.name+", int"+string(rune('0'+bits)), func(t *testing.T) {
				block := int64(64)
				if bits == 4 {
					block = 32
				}
				floats := c.model.Known("w", c.w).Output("y")
				p, counts := inIntegers(t, floats, bits)
				if counts != [2]int{c.uses, c.uses} {
					t.Errorf("%d of %d weights are in integers, want all of %d", counts[0], counts[1], c.uses)
				}
				for _, v := range p.Values {
					if v.Data != nil && v.DType.IsFloat() && v.Data.Len() >= 64*64 {
						t.Errorf("%s stays %v%v", v.Name, v.DType, v.Shape)
					}
				}
				w, _, _ := rounded(c.w, c.axis, block, bits)
				checkNear(t, modeltest.Run(t, p)["y"], modeltest.Run(t, modeltest.Import(t, replaced(floats, "w", w)))["y"])
			})
		}
	}
}

// checkNear compares elements up to rounding errors.
func checkNear(t *testing.T, got, want *array.Array) {
	t.Helper()
	largest := 0.0
	for i := range want.Len() {
		largest = max(largest, math.Abs(want.Float(i)))
	}
	for i := range want.Len() {
		if off := math.Abs(got.Float(i) - want.Float(i)); !(off <= 1e-5*largest) {
			t.Fatalf("element %d is %g, want %g", i, got.Float(i), want.Float(i))
		}
	}
}

// replaced returns a model with other elements of a constant.
func replaced(m *onnx.Model, name string, a *array.Array) *onnx.Model {
	g := *m.Graph
	g.Initializers = nil
	for _, known := range m.Graph.Initializers {
		if known.Name == name {
			known = &onnx.Tensor{Name: name, Value: a}
		}
		g.Initializers = append(g.Initializers, known)
	}
	return &onnx.Model{Opsets: m.Opsets, Graph: &g}
}

// TestRoundingExplainsTheError of a product: each weight is off by half a step, or, where the range ends, by one.
func TestRoundingExplainsTheError(t *testing.T) {
	w := signed(64, 72)
	m := modeltest.New().Input("x", 3, 64).Known("w", w).Node("y = MatMul x w").Output("y")
	want, x := modeltest.Run(t, modeltest.Import(t, m))["y"], modeltest.Wave(0, 1, 3, 64)
	for _, bits := range []int64{8, 4} {
		_, steps, step := rounded(w, 0, 64, bits)
		p, _ := inIntegers(t, m, bits)
		got, differs := modeltest.Run(t, p)["y"], false
		for i := range want.Len() {
			sum := 0.0
			for k := range int64(64) {
				sum += math.Abs(x.Float(i/72*64 + k))
			}
			off := math.Abs(got.Float(i) - want.Float(i))
			differs = differs || off > 1e-6
			if off > 1.01*sum*steps*step {
				t.Errorf("%d bits: element %d is off by %g, rounding explains %g", bits, i, off, sum*steps*step)
			}
		}
		if !differs {
			t.Errorf("%d bits: nothing was rounded", bits)
		}
	}
}

// TestWeightsThatStay in floats are counted among all.
func TestWeightsThatStay(t *testing.T) {
	infinite := signed(64, 72)
	infinite.SetFloat(7, math.Inf(1))
	for _, c := range []struct {
		name  string
		model modeltest.Model
		bits  int64
		want  [2]int
	}{
		{"small ones", modeltest.New().Input("x", 3, 32).Constant("w", 32, 72).Node("y = MatMul x w"), 8, [2]int{0, 1}},
		{"short channels", modeltest.New().Input("x", 3, 31).Constant("w", 31, 172).Node("y = MatMul x w"), 8, [2]int{0, 1}},
		{"channels that are no whole blocks", modeltest.New().Input("x", 3, 68).Constant("w", 68, 72).Node("y = MatMul x w"), 4, [2]int{0, 1}},
		{"a row that is transposed", modeltest.New().Input("x", 64, 3).Constant("w", 64, 72).Node("y = Gemm x w", modeltest.Int("transA", 1)), 8, [2]int{0, 1}},
		{"a matrix for each of a batch", modeltest.New().Input("x", 2, 3, 64).Constant("w", 2, 64, 72).Node("y = MatMul x w"), 8, [2]int{0, 1}},
		{"depthwise convolutions", modeltest.New().Input("x", 1, 400, 9, 9).Constant("w", 400, 1, 7, 7).Node("y = Conv x w", modeltest.Int("group", 400)), 8, [2]int{0, 1}},
		{"small kernels", modeltest.New().Input("x", 1, 3, 9, 9).Constant("w", 64, 3, 7, 7).Node("y = Conv x w"), 8, [2]int{0, 1}},
		{"convolutions of few terms", modeltest.New().Input("x", 1, 3, 5, 5).Constant("w", 640, 3, 3, 3).Node("y = Conv x w", modeltest.Same3x3), 8, [2]int{0, 1}},
		{"single elements that are no whole blocks", modeltest.New().Input("x", 1, 68, 5, 5).Constant("w", 64, 68, 1, 1).Node("y = Conv x w"), 4, [2]int{0, 1}},
		{"numbers that are not finite", modeltest.New().Input("x", 3, 64).Known("w", infinite).Node("y = MatMul x w"), 8, [2]int{0, 1}},
		{"what is read otherwise, too", modeltest.New().Input("x", 64, 64).Constant("w", 64, 64).Node("a = MatMul x w").Node("y = Add a w"), 8, [2]int{0, 1}},
		{"no weights at all", modeltest.New().Input("x", 64, 64).Node("y = MatMul x x"), 8, [2]int{0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, counts := inIntegers(t, c.model.Output("y"), c.bits); counts != c.want {
				t.Errorf("%d of %d weights are in integers, want %d of %d", counts[0], counts[1], c.want[0], c.want[1])
			}
		})
	}
}
