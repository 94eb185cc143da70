package op_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// TestClipWithoutABoundClipsInfinities: the default of a bound is the largest finite number.
func TestClipWithoutABoundClipsInfinities(t *testing.T) {
	inf := math.Inf(1)
	for d, largest := range map[array.DType]float64{array.Float16: 65504, array.Float32: math.MaxFloat32, array.Float64: math.MaxFloat64} {
		x := array.New(d, 3)
		for i, v := range []float64{-inf, 2, inf} {
			x.SetFloat(int64(i), v)
		}
		info := modeltest.Info("x", x.Shape)
		info.DType = d
		m := modeltest.New().Known("zero", array.Scalar(d, 0)).Node("low = Clip x zero").Node("high = Clip x _ zero").Node("none = Clip x")
		m.Graph.Inputs = append(m.Graph.Inputs, info)
		got, err := evaluate.Program(modeltest.Import(t, m.Output("low", "high", "none")), map[string]*array.Array{"x": x})
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string][]float64{"low": {0, 2, largest}, "high": {-largest, 0, 0}, "none": {-largest, 2, largest}} {
			if v := floats(got[name]); !slices.Equal(v, want) {
				t.Errorf("%v: %s is %v, want %v", d, name, v, want)
			}
		}
	}
}

// TestCastLikeKeepsTheShape: only the type of the second operand matters.
func TestCastLikeKeepsTheShape(t *testing.T) {
	m := modeltest.New().Input("x", 4).Known("like", array.New(array.Int32, 3, 5)).Constant("z", 2).
		Node("y = CastLike x like").Node("f = Cast z", modeltest.Int("to", 17)).Node("h = CastLike x f", modeltest.Int("saturate", 0)).
		Node("g = Cast h", modeltest.Int("to", 1)).Output("y", "g")
	got, err := evaluate.Program(modeltest.Import(t, m), map[string]*array.Array{"x": array.FromFloat32([]float32{1.5, -2.25, 17.1, 448}, 4)})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]float64{"y": {1, -2, 17, 448}, "g": {1.5, -2.25, 18, 448}} {
		if v := floats(got[name]); !slices.Equal(v, want) {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
}

// TestEinsumOverAnEmptyAxisIsZero: as in other products, sums without terms are zero.
func TestEinsumOverAnEmptyAxisIsZero(t *testing.T) {
	for equation, shapes := range map[string][][]int64{
		"ij,jk->ik": {{2, 0}, {0, 3}}, "ij,jk,kl->il": {{2, 0}, {0, 3}, {3, 4}}, "ij->i": {{2, 0}}, "ij,kl->kl": {{2, 0}, {3, 4}}, "...ij,...jk->...ik": {{2, 3, 0}, {2, 0, 3}},
	} {
		m, node, inputs := modeltest.New(), "y = Einsum", map[string]*array.Array{}
		for k, shape := range shapes {
			name := string(rune('a' + k))
			m, node, inputs[name] = m.Input(name, shape...), node+" "+name, array.New(array.Float32, shape...)
		}
		got, err := evaluate.Program(modeltest.Import(t, m.Node(node, &onnx.Attribute{Name: "equation", Type: onnx.AttrString, String: equation}).Output("y")), inputs)
		if err != nil {
			t.Errorf("%s: %v", equation, err)
			continue
		}
		if got["y"].Len() == 0 || !got["y"].IsZero() {
			t.Errorf("%s: %v", equation, floats(got["y"]))
		}
	}
}

func floats(a *array.Array) (values []float64) {
	for i := range a.Len() {
		values = append(values, a.Float(i))
	}
	return values
}
