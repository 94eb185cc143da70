package tilth_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/lab/testkit/graphfuzz"
)

// TestDecodeGoesOnWhereRunEnded compares Decode with Run on the keys and values of earlier executions.
func TestDecodeGoesOnWhereRunEnded(t *testing.T) {
	d := graphfuzz.GenerateDecoder(1, 4)
	file := filepath.Join(t.TempDir(), "decoder.tar")
	err := compile(t.Context(), d.Model, frontend.Options{Open: map[string]frontend.Bounds{
		graphfuzz.StepExtent: {Min: 1, Max: 4}, graphfuzz.PastExtent: {Min: 0, Max: 8}}}, file)
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
		past[d.Present[slices.Index(d.Kept, in.Name)]] = empty
		prompt = append(prompt, empty)
	}
	if !m.Decoder() || len(past) != len(d.Kept) || fresh.Name != d.Fresh {
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
