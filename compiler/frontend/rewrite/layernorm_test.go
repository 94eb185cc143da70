package rewrite_test

import (
	"math"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

func TestLayerNormsAreRecognised(t *testing.T) {
	written := func(axis int64) *onnx.Model {
		mean := modeltest.Ints("axes", axis)
		return modeltest.New().Input("x", 2, 5, 8).Constant("scale", 8).Constant("bias", 8).
			Known("two", array.FromFloat32([]float32{2})).Known("eps", array.FromFloat32([]float32{1e-5})).
			Node("m = ReduceMean x", mean).Node("d = Sub x m").Node("p = Pow d two").Node("v = ReduceMean p", mean).
			Node("e = Add v eps").Node("r = Sqrt e").Node("n = Div d r").Node("g = Mul n scale").Node("y = Add g bias").Output("y")
	}
	p := modeltest.Import(t, written(-1))
	modeltest.CheckTasks(t, p, "1 layernorm 2x5x8 -> 2x5x8")
	q := modeltest.Import(t, written(-2)) // another axis: not recognised
	if len(q.Tasks) < 4 {
		t.Errorf("normalisation of another axis became %v", modeltest.TaskNames(q))
	}
	got := modeltest.Run(t, p)["y"]
	x, scale := modeltest.Wave(0, 1, 2, 5, 8), modeltest.Wave(1, 0.5, 8)
	for row := range int64(10) {
		var mean, variance float64
		for k := range int64(8) {
			mean += x.Float(row*8+k) / 8
		}
		for k := range int64(8) {
			variance += math.Pow(x.Float(row*8+k)-mean, 2) / 8
		}
		for k := range int64(8) {
			want := (x.Float(row*8+k)-mean)/math.Sqrt(variance+1e-5)*scale.Float(k) + scale.Float(k)
			if g := got.Float(row*8 + k); math.Abs(g-want) > 1e-5 {
				t.Fatalf("row %d element %d is %g, want %g", row, k, g, want)
			}
		}
	}
}

// TestNormsInOtherFormsAreRecognised has what exporters write for normalisation beside the form with all parts.
func TestNormsInOtherFormsAreRecognised(t *testing.T) {
	mean := modeltest.Ints("axes", -1)
	start := func() modeltest.Model {
		return modeltest.New().Input("x", 2, 5, 8).Constant("scale", 8).Constant("bias", 8).
			Known("one", array.FromFloat32([]float32{1})).Known("eps", array.FromFloat32([]float32{1e-5}))
	}
	centred := func() modeltest.Model {
		return start().Node("m = ReduceMean x", mean).Node("d = Sub x m").Node("p = Mul d d").Node("v = ReduceMean p", mean).
			Node("e = Add v eps").Node("r = Sqrt e")
	}
	square := func() modeltest.Model {
		return start().Node("p = Mul x x").Node("v = ReduceMean p", mean).Node("e = Add v eps").Node("r = Sqrt e")
	}
	for name, c := range map[string]struct {
		s    modeltest.Model
		want string
	}{
		"no scale":                         {centred().Node("y = Div d r"), "1 layernorm 2x5x8 -> 2x5x8"},
		"no bias":                          {centred().Node("n = Div d r").Node("y = Mul n scale"), "1 layernorm 2x5x8 -> 2x5x8"},
		"reciprocal":                       {centred().Node("i = Reciprocal r").Node("n = Mul d i").Node("g = Mul n scale").Node("y = Add g bias"), "1 layernorm 2x5x8 -> 2x5x8"},
		"root mean square":                 {square().Node("n = Div x r").Node("y = Mul scale n"), "1 rmsnorm 2x5x8 -> 2x5x8"},
		"root mean square, one over":       {square().Node("i = Div one r").Node("n = Mul x i").Node("y = Mul scale n"), "1 rmsnorm 2x5x8 -> 2x5x8"},
		"root mean square without a scale": {square().Node("y = Div x r"), "1 rmsnorm 2x5x8 -> 2x5x8"},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.s.Output("y")
			p := modeltest.Import(t, m)
			modeltest.CheckTasks(t, p, c.want)
			modeltest.CheckMeaning(t, m, p)
		})
	}
}

func TestMeansOverDifferentAxesAreNoLayerNorm(t *testing.T) {
	all, last := modeltest.Ints("axes", 0, 1), modeltest.Ints("axes", -1)
	m := modeltest.New().Input("x", 2, 8).Constant("scale", 8).Constant("bias", 8).
		Known("two", array.FromFloat32([]float32{2})).Known("eps", array.FromFloat32([]float32{1e-5})).
		Node("m = ReduceMean x", all).Node("d = Sub x m").Node("p = Pow d two").Node("v = ReduceMean p", last).
		Node("e = Add v eps").Node("r = Sqrt e").Node("n = Div d r").Node("g = Mul n scale").Node("y = Add g bias").Output("y")
	if p := modeltest.Import(t, m); len(p.Tasks) < 2 {
		t.Errorf("became %v", modeltest.TaskNames(p))
	}
}
