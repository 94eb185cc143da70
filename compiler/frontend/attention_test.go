package frontend

import (
	"math"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// heads is a sketch with q, k and v as two heads of width 4 over 5 tokens, split out of rows of 8.
func heads() sketch {
	s := newSketch()
	for _, name := range []string{"q", "k", "v"} {
		s = s.input(name+"rows", 1, 5, 8).known(name+"shape", array.FromInt64([]int64{1, 5, 2, 4}, 4)).
			node(name + "split = Reshape " + name + "rows " + name + "shape")
	}
	return s.node("q = Transpose qsplit", intsAttr("perm", 0, 2, 1, 3)).node("k = Transpose ksplit", intsAttr("perm", 0, 2, 3, 1)).
		node("v = Transpose vsplit", intsAttr("perm", 0, 2, 1, 3))
}

// wantAttention is what the sketches' outputs are, computed in double precision.
func wantAttention(scale float64, mask func(i, j int64) float64) []float64 {
	q, k, v := wave(0, 1, 1, 5, 8), wave(0, 1, 1, 5, 8), wave(0, 1, 1, 5, 8)
	var out []float64
	for h := range int64(2) {
		for i := range int64(5) {
			var weights [5]float64
			var total float64
			for j := range int64(5) {
				var dot float64
				for d := range int64(4) {
					dot += q.Float(i*8+h*4+d) * k.Float(j*8+h*4+d)
				}
				weights[j] = math.Exp(dot*scale + mask(i, j))
				total += weights[j]
			}
			for d := range int64(4) {
				var sum float64
				for j := range int64(5) {
					sum += weights[j] * v.Float(j*8+h*4+d)
				}
				out = append(out, sum/total)
			}
		}
	}
	return out
}

// TestAttentionIsOneKernel has the forms in which exporters write attention.
func TestAttentionIsOneKernel(t *testing.T) {
	none := func(_, _ int64) float64 { return 0 }
	causal := func(i, j int64) float64 {
		if j > i {
			return math.Inf(-1)
		}
		return 0
	}
	allowed := array.New(array.Bool, 5, 5)
	added := array.New(array.Float32, 1, 1, 5, 5)
	for i := range int64(25) {
		allowed.SetInt(i, 1)
		if i%5 > i/5 {
			allowed.SetInt(i, 0)
			added.SetFloat(i, math.Inf(-1))
		}
	}
	two := array.FromFloat32([]float32{2})
	for _, c := range []struct {
		name  string
		s     sketch
		scale float64
		mask  func(i, j int64) float64
	}{
		{"bare", heads().node("s = MatMul q k").node("p = Softmax s").node("y = MatMul p v"), 1, none},
		{"divided", heads().known("two", two).node("s = MatMul q k").node("d = Div s two").node("p = Softmax d").node("y = MatMul p v"), 0.5, none},
		{"multiplied from the left", heads().known("two", two).node("s = MatMul q k").node("d = Mul two s").node("p = Softmax d").node("y = MatMul p v"), 2, none},
		{"a mask that is added", heads().known("two", two).known("m", added).node("s = MatMul q k").node("d = Div s two").
			node("a = Add d m").node("p = Softmax a").node("y = MatMul p v"), 0.5, causal},
		{"a mask to which is added", heads().known("m", added).node("s = MatMul q k").
			node("a = Add m s").node("p = Softmax a").node("y = MatMul p v"), 1, causal},
		{"a choice", heads().known("m", allowed).known("fill", array.FromFloat32([]float32{float32(math.Inf(-1))})).node("s = MatMul q k").
			node("a = Where m s fill").node("p = Softmax a").node("y = MatMul p v"), 1, causal},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustImport(t, c.s.output("y"))
			if len(p.Tasks) != 1 {
				t.Errorf("became %v", taskNames(p))
			}
			got, want := run(t, p)["y"], wantAttention(c.scale, c.mask)
			for k, w := range want {
				if g := got.Float(int64(k)); math.Abs(g-w) > 1e-5 {
					t.Fatalf("element %d is %g, want %g", k, g, w)
				}
			}
		})
	}
}

// TestScoresThatAreReadElsewhereAreNoAttention: what another node or the model's user reads must be computed.
func TestScoresThatAreReadElsewhereAreNoAttention(t *testing.T) {
	for name, m := range map[string]*onnx.Model{
		"output":       heads().node("s = MatMul q k").node("p = Softmax s").node("y = MatMul p v").output("y", "p"),
		"another axis": heads().node("s = MatMul q k").node("p = Softmax s", intAttr("axis", 2)).node("y = MatMul p v").output("y"),
		"two readers":  heads().node("s = MatMul q k").node("p = Softmax s").node("z = MatMul p v").node("r = Relu s").node("y = MatMul r z").output("y"),
	} {
		if p := mustImport(t, m); len(p.Tasks) < 3 {
			t.Errorf("%s: became %v", name, taskNames(p))
		}
	}
}
