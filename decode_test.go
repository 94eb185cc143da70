package tilth_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// decoder returns an attention layer that reads up to 4 positions x after up to 8 past ones.
func decoder() *onnx.Model {
	m := modeltest.New().Input("x", 1, 4, 6).Input("past_keys", 1, 8, 6).Input("past_values", 1, 8, 6).
		Constant("wk", 6, 6).Constant("wv", 6, 6).
		Node("k = MatMul x wk").Node("keys = Concat past_keys k", modeltest.Int("axis", 1)).
		Node("v = MatMul x wv").Node("values = Concat past_values v", modeltest.Int("axis", 1)).
		Node("turned = Transpose keys", modeltest.Ints("perm", 0, 2, 1)).Node("scores = MatMul x turned").
		Node("weights = Softmax scores", modeltest.Int("axis", -1)).Node("y = MatMul weights values").Output("y", "keys", "values")
	for k, symbol := range []string{"sequence", "past", "past"} {
		m.Graph.Inputs[k].Shape[1] = onnx.Dim{Value: -1, Param: symbol}
	}
	return m
}

// TestDecodeContinuesAfterRun compares Decode with Run on the keys and values of earlier executions.
func TestDecodeContinuesAfterRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "decoder.tar")
	err := compile(t.Context(), decoder(), frontend.Options{Open: map[string]frontend.Bounds{
		"sequence": {Min: 1, Max: 4}, "past": {Min: 0, Max: 8}}}, file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := tilth.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var fresh tilth.Spec
	past := map[string]tilth.Tensor{} // by the output that extends it
	var prompt []tilth.Tensor
	for _, in := range m.Inputs() {
		if !in.Kept {
			fresh = in
			continue
		}
		shape := slices.Clone(in.Shape)
		shape[in.Varying[0]] = 0
		empty := tilth.NewTensor(in.Name, []float32{}, shape...)
		past[strings.TrimPrefix(in.Name, "past_")] = empty
		prompt = append(prompt, empty)
	}
	if !m.Decoder() || len(past) != 2 || fresh.Name != "x" {
		t.Fatalf("decoder: %v, fresh: %q, kept: %v", m.Decoder(), fresh.Name, past)
	}
	ran, err := m.Run(t.Context(), append(prompt, positions(fresh, 3, 1)))
	if err != nil {
		t.Fatal(err)
	}
	next := positions(fresh, 1, 2)
	got, err := m.Decode(t.Context(), []tilth.Tensor{next})
	if err != nil {
		t.Fatal(err)
	}
	again := []tilth.Tensor{next}
	for _, out := range ran {
		if in, kept := past[out.Name]; kept {
			out.Name = in.Name
			again = append(again, out)
		}
	}
	want, err := m.Run(t.Context(), again)
	if err != nil {
		t.Fatal(err)
	}
	for k := range want {
		if !slices.Equal(got[k].Shape, want[k].Shape) || !slices.Equal(got[k].Data, want[k].Data) {
			t.Errorf("output %q is %v, want %v", got[k].Name, got[k].Shape, want[k].Shape)
		}
	}
}

// positions returns n positions of consecutive numbers from first.
func positions(s tilth.Spec, n int64, first float32) tilth.Tensor {
	width := s.Shape[2]
	values := make([]float32, n*width)
	for i := range values {
		values[i] = first / float32(1+i)
	}
	return tilth.NewTensor(s.Name, values, 1, n, width)
}
