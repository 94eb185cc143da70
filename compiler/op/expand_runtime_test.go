package op_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// ofRuntime makes all nodes of a model ONNX Runtime's own.
func ofRuntime(m *onnx.Model) *onnx.Model {
	for _, n := range m.Graph.Nodes {
		n.Domain = "com.microsoft"
	}
	return m
}

// evaluated imports a model and evaluates it on waves, with which inputs are filled in order.
func evaluated(t *testing.T, m *onnx.Model) (inputs, outputs map[string]*array.Array) {
	t.Helper()
	p, err := frontend.Import(m, frontend.Options{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	inputs = map[string]*array.Array{}
	for k, v := range p.Inputs {
		inputs[p.Values[v].Name] = modeltest.Wave(float64(k), 1, p.Values[v].Shape...)
	}
	if outputs, err = evaluate.Program(p, inputs); err != nil {
		t.Fatal(err)
	}
	return inputs, outputs
}

func wantElements(t *testing.T, name string, got *array.Array, want []float64) {
	t.Helper()
	w := array.New(got.DType, got.Shape...)
	for i, v := range want {
		w.SetFloat(int64(i), v)
	}
	if err := modeltest.Compare(got, w); err != nil || got.Len() != int64(len(want)) {
		t.Errorf("%s, %v%v: %v", name, got.DType, got.Shape, err)
	}
}

// rootMeanSquare normalises rows.
func rootMeanSquare(rows [][]float64, scale *array.Array, epsilon float64) (all []float64) {
	for _, row := range rows {
		squares := 0.0
		for _, v := range row {
			squares += v * v
		}
		for k, v := range row {
			all = append(all, v/math.Sqrt(squares/float64(len(row))+epsilon)*scale.Float(int64(k)))
		}
	}
	return all
}

// rowsOf returns the sums of arrays as rows of the given length; shorter arrays repeat.
func rowsOf(width int64, arrays ...*array.Array) (rows [][]float64) {
	for i := range arrays[0].Len() {
		if i%width == 0 {
			rows = append(rows, nil)
		}
		sum := 0.0
		for _, a := range arrays {
			sum += a.Float(i % a.Len())
		}
		last := len(rows) - 1
		rows[last] = append(rows[last], sum)
	}
	return rows
}

func TestSimplifiedNormalisations(t *testing.T) {
	epsilon := &onnx.Attribute{Name: "epsilon", Type: onnx.AttrFloat, Float: 0.01}
	m := modeltest.New().Input("x", 2, 3, 8).Input("scale", 8).Node("y = SimplifiedLayerNormalization x scale", epsilon).Output("y")
	for _, model := range []*onnx.Model{m, ofRuntime(m)} {
		in, out := evaluated(t, model)
		wantElements(t, "y", out["y"], rootMeanSquare(rowsOf(8, in["x"]), in["scale"], 0.01))
	}
	skip := modeltest.New().Input("x", 2, 3, 8).Input("skip", 2, 3, 8).Input("scale", 8).Input("bias", 8).
		Node("y _ _ sum = SkipSimplifiedLayerNormalization x skip scale bias", epsilon).Output("y", "sum")
	skip.Graph.Nodes[0].Outputs = []string{"y", "", "", "sum"}
	in, out := evaluated(t, ofRuntime(skip))
	rows := rowsOf(8, in["x"], in["skip"], in["bias"])
	wantElements(t, "y", out["y"], rootMeanSquare(rows, in["scale"], 0.01))
	sums := []float64{}
	for _, row := range rows {
		sums = append(sums, row...)
	}
	wantElements(t, "sum", out["sum"], sums)
}

// heads are the elements of (batch, positions, heads*size) by batch, head, position and feature.
type heads struct {
	a           *array.Array
	count, size int64
}

func (h heads) at(b, head, position, feature int64) float64 {
	return h.a.Float(((b*h.a.Shape[1]+position)*h.count+head)*h.size + feature)
}

// turned returns a feature rotated with the one that it pairs with, by the angle of a position in the caches.
func (h heads) turned(cos, sin *array.Array, interleaved bool, b, head, position, feature, place int64) float64 {
	pairs := cos.Shape[1]
	if feature >= 2*pairs {
		return h.at(b, head, position, feature)
	}
	pair, second, first, other := feature%pairs, feature >= pairs, feature%pairs, feature%pairs+pairs
	if interleaved {
		pair, second, first, other = feature/2, feature%2 == 1, feature/2*2, feature/2*2+1
	}
	c, s := cos.Float(place*pairs+pair), sin.Float(place*pairs+pair)
	x, y := h.at(b, head, position, first), h.at(b, head, position, other)
	if second {
		return x*s + y*c
	}
	return x*c - y*s
}

func TestRotationsByCachedAngles(t *testing.T) {
	for name, c := range map[string]struct {
		places      *array.Array
		interleaved int64
	}{
		"all places":  {array.FromInt64([]int64{0, 1, 2, 4, 5, 6}, 2, 3), 0},
		"first place": {array.FromInt64([]int64{2}, 1), 0},
		"interleaved": {array.FromInt64([]int64{1}, 1), 1},
	} {
		m := modeltest.New().Input("x", 2, 3, 12).Input("cos", 7, 2).Input("sin", 7, 2).Known("places", c.places).
			Node("y = RotaryEmbedding x places cos sin", modeltest.Int("interleaved", c.interleaved)).Output("y")
		in, out := evaluated(t, ofRuntime(m))
		x, want := heads{in["x"], 3, 4}, []float64{}
		for i := range in["x"].Len() {
			b, position, head, feature := i/36, i/12%3, i/4%3, i%4
			place := c.places.Int(0) + position
			if c.places.Len() > 1 {
				place = c.places.Int(b*3 + position)
			}
			want = append(want, x.turned(in["cos"], in["sin"], c.interleaved != 0, b, head, position, feature, place))
		}
		wantElements(t, name, out["y"], want)
	}
}

// groupAttention is causal attention of 4 heads of 6 features on 2 of keys and values, for 2 sequences of 5 positions,
// the first 4 features of queries and keys being rotated.
func groupAttention(q, k, v heads, cos, sin *array.Array, scale float64) (all []float64) {
	for i := range int64(2 * 5 * 4) {
		b, position, head := i/20, i/4%5, i%4
		weights, total := make([]float64, position+1), 0.0
		for key := range weights {
			dot := 0.0
			for f := range int64(6) {
				dot += q.turned(cos, sin, false, b, head, position, f, position) * k.turned(cos, sin, false, b, head/2, int64(key), f, int64(key))
			}
			weights[key] = math.Exp(dot * scale)
			total += weights[key]
		}
		for f := range int64(6) {
			sum := 0.0
			for key, w := range weights {
				sum += w / total * v.at(b, head/2, int64(key), f)
			}
			all = append(all, sum)
		}
	}
	return all
}

func TestGroupsOfQueriesShareKeysAndValues(t *testing.T) {
	known := func(s modeltest.Model) modeltest.Model {
		lengths, total := array.New(array.Int32, 2), array.New(array.Int32)
		lengths.SetInt(0, 4)
		lengths.SetInt(1, 4)
		total.SetInt(0, 5)
		return s.Known("lengths", lengths).Known("total", total).Input("cos", 9, 2).Input("sin", 9, 2)
	}
	attributes := []*onnx.Attribute{modeltest.Int("num_heads", 4), modeltest.Int("kv_num_heads", 2), modeltest.Int("do_rotary", 1),
		{Name: "scale", Type: onnx.AttrFloat, Float: 0.25}}
	m := known(modeltest.New().Input("q", 2, 5, 24).Input("k", 2, 5, 12).Input("v", 2, 5, 12)).
		Node("y keys values = GroupQueryAttention q k v _ _ lengths total cos sin", attributes...).Output("y", "keys", "values")
	in, out := evaluated(t, ofRuntime(m))
	q, k, v := heads{in["q"], 4, 6}, heads{in["k"], 2, 6}, heads{in["v"], 2, 6}
	wantElements(t, "y", out["y"], groupAttention(q, k, v, in["cos"], in["sin"], 0.25))
	var keys, values []float64
	for i := range int64(2 * 2 * 5 * 6) {
		b, head, position, feature := i/60, i/30%2, i/6%5, i%6
		keys = append(keys, k.turned(in["cos"], in["sin"], false, b, head, position, feature, position))
		values = append(values, v.at(b, head, position, feature))
	}
	wantElements(t, "keys", out["keys"], keys)
	wantElements(t, "values", out["values"], values)

	packed := known(modeltest.New().Input("qkv", 2, 5, 48)).Node("y = GroupQueryAttention qkv _ _ _ _ lengths total cos sin", attributes...).Output("y")
	in, out = evaluated(t, ofRuntime(packed))
	part := func(from, width int64) *array.Array {
		a := array.New(array.Float32, 2, 5, width)
		for i := range a.Len() {
			a.SetFloat(i, in["qkv"].Float(i/width*48+from+i%width))
		}
		return a
	}
	q, k, v = heads{part(0, 24), 4, 6}, heads{part(24, 12), 2, 6}, heads{part(36, 12), 2, 6}
	wantElements(t, "packed", out["y"], groupAttention(q, k, v, in["cos"], in["sin"], 0.25))
}

// TestSharedKeysAreReadByOneKernel: with a past and a window, too.
func TestSharedKeysAreReadByOneKernel(t *testing.T) {
	m := modeltest.New().Input("q", 1, 5, 24).Input("k", 1, 5, 12).Input("v", 1, 5, 12).Input("past", 1, 2, 3, 6).
		Node("y keys values = GroupQueryAttention q k v past past", modeltest.Int("num_heads", 4), modeltest.Int("kv_num_heads", 2), modeltest.Int("local_window_size", 4)).
		Output("y")
	names := modeltest.TaskNames(modeltest.Import(t, ofRuntime(m)))
	if all := strings.Join(names, "\n"); !strings.Contains(all, "attention") || strings.Contains(all, "matmul") {
		t.Errorf("became\n%s", all)
	}
}

// lengths returns known ones, as ONNX Runtime has them.
func lengths(v ...int64) *array.Array {
	a := array.New(array.Int32, int64(len(v)))
	for k, n := range v {
		a.SetInt(int64(k), n)
	}
	return a
}

func TestAttentionOfRuntimeThatIsRefused(t *testing.T) {
	few := []*onnx.Attribute{modeltest.Int("num_heads", 4), modeltest.Int("kv_num_heads", 2)}
	plain := func() modeltest.Model {
		return modeltest.New().Input("q", 1, 5, 24).Input("k", 1, 5, 12).Input("v", 1, 5, 12).Input("past", 1, 2, 3, 6)
	}
	for _, c := range []struct {
		name  string
		model *onnx.Model
		want  string
	}{
		{"half a past", plain().Node("y = GroupQueryAttention q k v past", few...).Output("y"), "one of them is missing"},
		{"flat past", plain().Node("y = GroupQueryAttention q k v q q", few...).Output("y"), "do not have 4 axes"},
		{"room in the past", plain().Known("total", lengths(6)).Node("y = GroupQueryAttention q k v past past _ total", few...).Output("y"),
			"input 6, how many tokens there are, is not 8"},
		{"unlike sequences", plain().Known("l", lengths(6)).Node("y = GroupQueryAttention q k v past past l", few...).Output("y"),
			"sequence 0 has 7 tokens where the past and the new ones are 8"},
		{"lengths that are computed", modeltest.New().Input("q", 2, 5, 24).Input("k", 2, 5, 12).Input("past", 2, 2, 3, 6).Input("l", 2).
			Node("y = GroupQueryAttention q k k past past l", few...).Output("y"), "fix the batch to 1 by --shape"},
		{"sinks of other heads", plain().Known("s", lengths(1, 2, 3)).Node("y = GroupQueryAttention q k v _ _ _ _ _ _ _ _ s", few...).Output("y"), "not one for each of 4 heads"},
		{"packed heads", plain().Node("y = MultiHeadAttention q", modeltest.Int("num_heads", 4)).Output("y"), "packed queries, keys and values"},
		{"bias of heads", plain().Node("y = MultiHeadAttention k k k q", modeltest.Int("num_heads", 2)).Output("y"), "bias f32[1 5 24] does not fit"},
		{"mask of other sequences", plain().Known("l", lengths(3, 4, 5)).Node("y = MultiHeadAttention k k k _ l", modeltest.Int("num_heads", 2)).Output("y"), "mask i32[3] is not one of 1 sequences with 5 queries and 5 keys"},
		{"a past of one", plain().Constant("w", 24, 36).Node("y = Attention q w _ _ past", modeltest.Int("num_heads", 2)).Output("y"), "past f32[1 2 3 6] is not"},
		{"parts of weights", plain().Constant("w", 24, 35).Node("y = Attention q w", modeltest.Int("num_heads", 2)).Output("y"), "are not the 35 of the weights"},
		{"no angles", plain().Node("y = GroupQueryAttention q k v", append(few[:2:2], modeltest.Int("do_rotary", 1))...).Output("y"), "cosines or sines are missing"},
		{"heads", plain().Node("y = GroupQueryAttention q k v").Output("y"), "does not fit 0 heads"},
		{"odd packing", plain().Node("y = GroupQueryAttention k", few...).Output("y"), "do not fit 4 heads"},
		{"training", func() *onnx.Model {
			m := plain().Constant("s", 24).Node("y r = SimplifiedLayerNormalization q s").Output("y", "r")
			m.Graph.Nodes[0].Outputs = []string{"y", "r"}
			return m
		}(), "export the model for inference"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := frontend.Import(ofRuntime(c.model), frontend.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
