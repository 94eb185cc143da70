package rewrite_test

import (
	"math"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// heads returns a sketch with q, k and v as two heads of width 4 over 5 tokens, split out of rows of 8.
func heads() modeltest.Model {
	s := modeltest.New()
	for _, name := range []string{"q", "k", "v"} {
		s = s.Input(name+"rows", 1, 5, 8).Known(name+"shape", array.FromInt64([]int64{1, 5, 2, 4}, 4)).
			Node(name + "split = Reshape " + name + "rows " + name + "shape")
	}
	return s.Node("q = Transpose qsplit", modeltest.Ints("perm", 0, 2, 1, 3)).Node("k = Transpose ksplit", modeltest.Ints("perm", 0, 2, 3, 1)).
		Node("v = Transpose vsplit", modeltest.Ints("perm", 0, 2, 1, 3))
}

// wantAttention is what the sketches' outputs are, computed in double precision.
func wantAttention(scale float64, mask func(i, j int64) float64) []float64 {
	q, k, v := modeltest.Wave(0, 1, 1, 5, 8), modeltest.Wave(0, 1, 1, 5, 8), modeltest.Wave(0, 1, 1, 5, 8)
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

// TestAttentionIsOneKernel checks the forms in which exporters write attention.
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
		s     modeltest.Model
		scale float64
		mask  func(i, j int64) float64
	}{
		{"bare", heads().Node("s = MatMul q k").Node("p = Softmax s").Node("y = MatMul p v"), 1, none},
		{"divided", heads().Known("two", two).Node("s = MatMul q k").Node("d = Div s two").Node("p = Softmax d").Node("y = MatMul p v"), 0.5, none},
		{"multiplied from the left", heads().Known("two", two).Node("s = MatMul q k").Node("d = Mul two s").Node("p = Softmax d").Node("y = MatMul p v"), 2, none},
		{"a mask that is added", heads().Known("two", two).Known("m", added).Node("s = MatMul q k").Node("d = Div s two").
			Node("a = Add d m").Node("p = Softmax a").Node("y = MatMul p v"), 0.5, causal},
		{"a mask to which is added", heads().Known("m", added).Node("s = MatMul q k").
			Node("a = Add m s").Node("p = Softmax a").Node("y = MatMul p v"), 1, causal},
		{"a choice", heads().Known("m", allowed).Known("fill", array.FromFloat32([]float32{float32(math.Inf(-1))})).Node("s = MatMul q k").
			Node("a = Where m s fill").Node("p = Softmax a").Node("y = MatMul p v"), 1, causal},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := modeltest.Import(t, c.s.Output("y"))
			if len(p.Tasks) != 1 {
				t.Errorf("became %v", modeltest.TaskNames(p))
			}
			got, want := modeltest.Run(t, p)["y"], wantAttention(c.scale, c.mask)
			for k, w := range want {
				if g := got.Float(int64(k)); math.Abs(g-w) > 1e-5 {
					t.Fatalf("element %d is %g, want %g", k, g, w)
				}
			}
		})
	}
}

// TestScoresThatAreReadElsewhereAreNoAttention: scores with other readers must be computed.
func TestScoresThatAreReadElsewhereAreNoAttention(t *testing.T) {
	for name, m := range map[string]*onnx.Model{
		"output":       heads().Node("s = MatMul q k").Node("p = Softmax s").Node("y = MatMul p v").Output("y", "p"),
		"another axis": heads().Node("s = MatMul q k").Node("p = Softmax s", modeltest.Int("axis", 2)).Node("y = MatMul p v").Output("y"),
		"two readers":  heads().Node("s = MatMul q k").Node("p = Softmax s").Node("z = MatMul p v").Node("r = Relu s").Node("y = MatMul r z").Output("y"),
	} {
		if p := modeltest.Import(t, m); len(p.Tasks) < 3 {
			t.Errorf("%s: became %v", name, modeltest.TaskNames(p))
		}
	}
}

// TestSharedHeadsAreReadWhereTheyAre: keys and values of two heads, each repeated for two heads of queries as
// exporters do, are operands as they are.
func TestSharedHeadsAreReadWhereTheyAre(t *testing.T) {
	list := func(v ...int64) *array.Array { return array.FromInt64(v, int64(len(v))) }
	shared := func() modeltest.Model {
		s := modeltest.New().Input("q", 2, 4, 3, 4).Known("two", list(2)).Known("wide", list(1, 1, 2, 1, 1)).Known("all", list(2, 4, 5, 4))
		for _, name := range []string{"k", "v"} {
			s = s.Input(name, 2, 2, 5, 4).Node(name + "1 = Unsqueeze " + name + " two").Node(name + "2 = Expand " + name + "1 wide").
				Node(name + "3 = Reshape " + name + "2 all")
		}
		return s.Node("turned = Transpose k3", modeltest.Ints("perm", 0, 1, 3, 2)).Node("s = MatMul q turned")
	}
	for name, s := range map[string]modeltest.Model{
		"bare":                    shared().Node("p = Softmax s").Node("y = MatMul p v3"),
		"a mask":                  shared().Constant("m", 3, 5).Node("a = Add s m").Node("p = Softmax a").Node("y = MatMul p v3"),
		"a mask of each sequence": shared().Input("m", 2, 1, 3, 5).Node("a = Add s m").Node("p = Softmax a").Node("y = MatMul p v3"),
	} {
		m := s.Output("y")
		p := modeltest.Import(t, m)
		if len(p.Tasks) != 1 {
			t.Errorf("%s: became %v", name, modeltest.TaskNames(p))
		}
		modeltest.CheckMeaning(t, m, p)
	}
	m := shared().Input("m", 1, 4, 3, 5).Node("a = Add s m").Node("p = Softmax a").Node("y = MatMul p v3").Output("y")
	modeltest.CheckMeaning(t, m, modeltest.Import(t, m)) // a mask of each head: repeated as before
}

// TestQueriesThatAreBroadcastToRepeatedHeads checks that broadcast queries, which do not belong to groups, are not
// fused.
func TestQueriesThatAreBroadcastToRepeatedHeads(t *testing.T) {
	list := func(v ...int64) *array.Array { return array.FromInt64(v, int64(len(v))) }
	for _, shape := range [][]int64{{1, 1, 3, 4}, {2, 1, 3, 4}, {4, 3, 4}, {3, 4}} {
		m := modeltest.New().Input("q", shape...).Input("k", 1, 1, 1, 5, 4).Known("wide", list(1, 1, 4, 5, 4)).Known("all", list(1, 4, 5, 4)).
			Node("k1 = Expand k wide").Node("k2 = Reshape k1 all").Node("turned = Transpose k2", modeltest.Ints("perm", 0, 1, 3, 2)).
			Node("s = MatMul q turned").Node("p = Softmax s").Node("y = MatMul p k2").Output("y")
		modeltest.CheckMeaning(t, m, modeltest.Import(t, m))
	}
}
