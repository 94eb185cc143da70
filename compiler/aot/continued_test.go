package aot

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// decoder is attention of two heads of positions x to themselves and to a past, which "present" outputs continue.
func decoder() *onnx.Model {
	m := modeltest.New().Input("x", 1, -1, 8).Input("past_k", 1, 2, -1, 4).Input("past_v", 1, 2, -1, 4).
		Constant("wq", 8, 8).Constant("wk", 8, 8).Constant("wv", 8, 8).Known("heads", array.FromInt64([]int64{1, -1, 2, 4}, 4)).
		Known("rows", array.FromInt64([]int64{1, -1, 8}, 3))
	for _, name := range []string{"q", "k", "v"} {
		m = m.Node(name+"_flat = MatMul x w"+name).Node(name+"_heads = Reshape "+name+"_flat heads").
			Node(name+" = Transpose "+name+"_heads", modeltest.Ints("perm", 0, 2, 1, 3))
	}
	model := m.Node("present_k = Concat past_k k", modeltest.Int("axis", 2)).Node("present_v = Concat past_v v", modeltest.Int("axis", 2)).
		Node("turned = Transpose present_k", modeltest.Ints("perm", 0, 1, 3, 2)).Node("scores = MatMul q turned").
		Node("weights = Softmax scores", modeltest.Int("axis", -1)).Node("all = MatMul weights present_v").
		Node("back = Transpose all", modeltest.Ints("perm", 0, 2, 1, 3)).Node("y = Reshape back rows").Output("y", "present_k", "present_v")
	for k, axis := range []int{1, 2, 2} {
		model.Graph.Inputs[k].Shape[axis].Param = []string{"sequence", "past", "past"}[k]
	}
	return model
}

// openDecoder has 1 to 6 positions and up to 9 before them.
func openDecoder(t *testing.T) *program.Program {
	t.Helper()
	p, err := frontend.Import(decoder(), frontend.Options{Verify: true, Open: map[string]frontend.Bounds{
		"sequence": {Min: 1, Max: 6, Caps: []int64{1}}, "past": {Min: 0, Max: 9}}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func pastOf(positions int64) map[string]*array.Array {
	return map[string]*array.Array{"past_k": sample(3, 1, 2, positions, 4), "past_v": sample(5, 1, 2, positions, 4)}
}

// TestOutputsContinueInputs checks that a continued input is neither copied nor stored twice.
func TestOutputsContinueInputs(t *testing.T) {
	p := openDecoder(t)
	m := opened(t, plain(t, p).Output)
	for k, name := range []string{"", "past_k", "past_v"} {
		if got := m.Manifest().Outputs[k].Continues; got != name {
			t.Errorf("output %d continues %q, want %q", k, got, name)
		}
	}
	for _, n := range [][2]int64{{6, 9}, {1, 9}, {1, 4}, {2, 5}, {6, 1}, {3, 0}, {1, 0}} {
		inputs := pastOf(n[1])
		inputs["x"] = sample(1, 1, n[0], 8)
		_, want := runEvaluated(t, p, m, inputs)
		fixed, err := frontend.Import(decoder(), frontend.Options{Shapes: map[string][]int64{"sequence": n[:1], "past": n[1:]}})
		if err != nil {
			t.Fatal(err)
		}
		exact, err := evaluate.Program(fixed, inputs)
		if err != nil {
			t.Fatal(err)
		}
		for name, a := range exact {
			if err := modeltest.Compare(want[name], a); err != nil {
				t.Errorf("%v: %s: %v", n, name, err)
			}
		}
	}
}

// TestDecoding checks that each execution continues the last one, with its state in memory.
func TestDecoding(t *testing.T) {
	p := openDecoder(t)
	m := opened(t, plain(t, p).Output)
	if d := m.Manifest().Decoding; d == nil || *d != (Decoding{Past: "past", Step: "sequence"}) {
		t.Fatalf("decoding is by %+v, want past and sequence", d)
	}
	for range 2 { // from the start, whatever was before
		inputs := pastOf(0)
		inputs["x"] = sample(1, 1, 4, 8)
		_, want := runEvaluated(t, p, m, inputs)
		for step, n := range []int64{1, 1, 2, 1, 3} {
			x := sample(uint32(step), 1, n, 8)
			if err := m.Continue(map[string]*array.Array{"x": x}); err != nil {
				t.Fatal(err)
			}
			if err := m.Execute(); err != nil {
				t.Fatal(err)
			}
			inputs := map[string]*array.Array{"x": x, "past_k": want["present_k"], "past_v": want["present_v"]}
			var err error
			if want, err = evaluate.Program(p, inputs); err != nil {
				t.Fatal(err)
			}
			got := m.Outputs()
			for name, w := range want {
				if err := modeltest.Compare(got[name], w); err != nil {
					t.Errorf("step %d: %s: %v", step, name, err)
				}
			}
		}
	}
	const full = "it has 12 positions, and the package was compiled for at most 9"
	if err := m.Continue(map[string]*array.Array{"x": sample(1, 1, 1, 8)}); err == nil || !strings.Contains(err.Error(), full) {
		t.Errorf("%v, want an error that says %q", err, full)
	}
	if _, err := m.Run(pastOf(2)); err == nil || !strings.Contains(err.Error(), "no input determines sequence") {
		t.Errorf("%v, want an error that says that x is missing", err)
	}
	inputs := pastOf(2)
	inputs["x"] = sample(1, 1, 1, 8)
	if _, err := m.Run(inputs); err != nil {
		t.Fatal(err)
	}
	if err := m.Continue(inputs); err == nil || !strings.Contains(err.Error(), "omit it") {
		t.Errorf("%v, want an error that says to omit it", err)
	}
	if err := m.Continue(map[string]*array.Array{}); err == nil || !strings.Contains(err.Error(), "no input determines sequence") {
		t.Errorf("%v, want an error that says that x is missing", err)
	}
	x := map[string]*array.Array{"x": sample(1, 1, 1, 8)}
	if err := m.Continue(x); err != nil {
		t.Errorf("after one that was refused: %v", err)
	}
	if err := m.Continue(x); err == nil || !strings.Contains(err.Error(), "nothing to go on from") {
		t.Errorf("%v, want an error that says that nothing was executed since inputs were set", err)
	}
}

// TestHostileDecoding checks arbitrary manifests.
func TestHostileDecoding(t *testing.T) {
	extents := []Extent{{"past", 0, 4, 0}, {"step", 1, 2, 0}}
	in, out := Tensor{Name: "p", DType: "f32", Shape: []int64{6}}, Tensor{Name: "o", DType: "f32", Shape: []int64{6}, Continues: "p"}
	short, alone := out, out
	short.Shape, alone.Continues = []int64{5}, ""
	for name, m := range map[string]*Manifest{
		"continues nothing":     {Extents: extents, Outputs: []Tensor{out}},
		"continues another one": {Extents: extents, Inputs: []Tensor{in}, Outputs: []Tensor{short}},
		"continued twice":       {Extents: extents, Inputs: []Tensor{in}, Outputs: []Tensor{out, out}},
		"no extent":             {Extents: extents, Inputs: []Tensor{in}, Outputs: []Tensor{out}, Decoding: &Decoding{"past", "more"}},
		"one extent":            {Extents: extents, Inputs: []Tensor{in}, Outputs: []Tensor{out}, Decoding: &Decoding{"past", "past"}},
		"no output":             {Extents: extents, Inputs: []Tensor{in}, Outputs: []Tensor{alone}, Decoding: &Decoding{"past", "step"}},
	} {
		if err := m.checkContinued(); err == nil {
			t.Errorf("%s: it is accepted", name)
		}
	}
}

// TestDoubledPastIsNotADecoder: such a past does not grow by an execution's positions.
func TestDoubledPastIsNotADecoder(t *testing.T) {
	m := modeltest.New().Input("p", 4, 2).Node("y = Concat p p", modeltest.Int("axis", 0)).Output("y")
	m.Graph.Inputs[0].Shape[0] = onnx.Dim{Value: -1, Param: "n"}
	p, err := frontend.Import(m, frontend.Options{Open: map[string]frontend.Bounds{"n": {Min: 0, Max: 8}}})
	if err != nil {
		t.Fatal(err)
	}
	if d, ok := p.Decoding(); ok {
		t.Errorf("it is said to decode by %+v", d)
	}
}

func TestDecodingFromC(t *testing.T) {
	p := openDecoder(t)
	dir := unpackedFor(t, plain(t, p), "decode.c")
	x := sample(1, 1, 6, 8)
	out, err := run(t, []string{filepath.Join(dir, "user"), filepath.Join(dir, objectName), filepath.Join(dir, weightsName)}, x.Data)
	if err != nil {
		t.Fatal(err)
	}
	inputs := pastOf(0)
	var rows []float32
	for _, n := range [][2]int64{{0, 3}, {3, 4}, {4, 6}} {
		inputs["x"] = array.FromFloat32(x.Float32s()[n[0]*8:n[1]*8], 1, n[1]-n[0], 8)
		outputs, err := evaluate.Program(p, inputs)
		if err != nil {
			t.Fatal(err)
		}
		inputs["past_k"], inputs["past_v"] = outputs["present_k"], outputs["present_v"]
		rows = append(rows, outputs["y"].Float32s()...)
	}
	if len(out) < 4*len(rows) {
		t.Fatalf("it wrote %d bytes", len(out))
	}
	got := &array.Array{DType: array.Float32, Shape: []int64{int64(len(rows))}, Data: out[:4*len(rows)]}
	if err := modeltest.Compare(got, array.FromFloat32(rows, int64(len(rows)))); err != nil {
		t.Error(err)
	}
	const want = "7 positions: the model was compiled for 1 to 6 at a time\n10 positions before: the model was compiled for 0 to 9\n"
	if said := string(out[4*len(rows):]); said != want {
		t.Errorf("it says %q, want %q", said, want)
	}
}
