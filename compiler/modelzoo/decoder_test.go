package modelzoo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// decoders are small ones of each form; fused ones are read by ONNX Runtime where heads have 16 features.
var decoders = map[string]struct {
	build func(b *builder, s size)
	fused bool
}{
	"gpt":         {gpt{2, 16, 2, 50}.build, false},
	"llama":       {llama{2, 16, 4, 2, 24, 50}.build, false},
	"fused llama": {llama{2, 16, 4, 2, 24, 50}.build, true},
}

func decoder(build func(b *builder, s size), s size) *onnx.Model {
	b := newBuilder("decoder", 3)
	b.open = s.past
	build(b, s)
	b.materialise()
	return &onnx.Model{IRVersion: irVersion, Opsets: []onnx.Opset{{Version: 17}, {Domain: runtimeDomain, Version: 1}}, Graph: b.graph}
}

// decode imports a model for tokens from one position to another, and reads them.
func decode(t *testing.T, m *onnx.Model, tokens []int64, from, to int, present map[string]*array.Array) map[string]*array.Array {
	t.Helper()
	extents := map[string][]int64{"batch": {1}, "sequence": {int64(to - from)}, "past": {int64(from)}}
	p, err := frontend.Import(m, frontend.Options{Shapes: extents, Verify: true})
	if err != nil {
		t.Fatalf("%d tokens after %d: %v", to-from, from, err)
	}
	return read(t, p, tokens, from, to, present)
}

// read reads tokens from one position to another, with what was present after those before.
func read(t *testing.T, p *program.Program, tokens []int64, from, to int, present map[string]*array.Array) map[string]*array.Array {
	t.Helper()
	n := int64(to - from)
	inputs := map[string]*array.Array{"input_ids": array.FromInt64(tokens[from:to], 1, n)}
	for _, v := range p.Inputs {
		switch value := p.Values[v]; {
		case value.Name == "position_ids":
			places := make([]int64, n)
			for k := range places {
				places[k] = int64(from + k)
			}
			inputs[value.Name] = array.FromInt64(places, 1, n)
		case from == 0 && value.Name != "input_ids":
			inputs[value.Name] = array.New(value.DType, value.Shape[0], value.Shape[1], 0, value.Shape[3])
		case value.Name != "input_ids":
			inputs[value.Name] = present[strings.Replace(value.Name, "past_key_values", "present", 1)]
		}
	}
	outs, err := evaluate.Program(p, inputs)
	if err != nil {
		t.Fatalf("%d tokens after %d: %v", n, from, err)
	}
	return outs
}

// TestTokensMayBeReadInParts: all at once, or some after others with the keys and values of these; by a program for
// each number of tokens, or by one for any.
func TestTokensMayBeReadInParts(t *testing.T) {
	tokens := []int64{3, 14, 15, 9, 26, 5}
	for name, d := range decoders {
		m := decoder(d.build, size{batch: 1, seq: 6, max: 16, past: true, fused: d.fused})
		open := map[string]frontend.Bounds{"sequence": {Min: 1, Max: 6}, "past": {Min: 0, Max: 5}}
		general, err := frontend.Import(m, frontend.Options{Shapes: map[string][]int64{"batch": {1}}, Open: open, Verify: true})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all := decode(t, m, tokens, 0, 6, nil)
		for way, next := range map[string]func(from, to int, present map[string]*array.Array) map[string]*array.Array{
			"programs": func(from, to int, present map[string]*array.Array) map[string]*array.Array {
				return decode(t, m, tokens, from, to, present)
			},
			"a program": func(from, to int, present map[string]*array.Array) map[string]*array.Array {
				return read(t, general, tokens, from, to, present)
			},
		} {
			var outs map[string]*array.Array
			logits := array.New(array.Float32, 1, 6, 50)
			for _, part := range [][2]int{{0, 2}, {2, 3}, {3, 6}} {
				outs = next(part[0], part[1], outs)
				copy(logits.Data[4*50*part[0]:], outs["logits"].Data)
			}
			outs["logits"] = logits
			for output, want := range all {
				if err := modeltest.Compare(outs[output], want); err != nil {
					t.Errorf("%s, by %s: %s: %v", name, way, output, err)
				}
			}
		}
	}
}

// takeWeights gives a model the weights of another one that has the same parameters.
func takeWeights(to, from *onnx.Model) {
	weights := map[string]*array.Array{}
	for _, w := range from.Graph.Initializers {
		weights[w.Name] = w.Value
	}
	for _, w := range to.Graph.Initializers {
		name := strings.Replace(w.Name, "dense.", "linear.", 1)
		for _, what := range []string{"linear.", "norm.", "embedding", "positions"} {
			if strings.HasPrefix(name, what) {
				w.Value = weights[name]
			}
		}
	}
}

// TestPastChangesNothingElse: a decoder without a past, and one that scores the last token alone, has the same
// scores.
func TestPastChangesNothingElse(t *testing.T) {
	tokens := []int64{3, 14, 15, 9, 26, 5}
	for name, d := range decoders {
		with := decoder(d.build, size{batch: 1, seq: 6, max: 16, past: true, fused: d.fused})
		want := decode(t, with, tokens, 0, 6, nil)["logits"]
		without := decoder(d.build, size{batch: 1, seq: 6, max: 16})
		takeWeights(without, with)
		outs, err := evaluate.Program(importEncoded(t, without), map[string]*array.Array{"input_ids": array.FromInt64(tokens, 1, 6)})
		if err != nil {
			t.Fatal(err)
		}
		if err := modeltest.Compare(outs["logits"], want); err != nil {
			t.Errorf("%s without a past: %v", name, err)
		}
		last := decoder(d.build, size{batch: 1, seq: 6, max: 16, past: true, fused: d.fused, last: true})
		takeWeights(last, with)
		end := array.New(array.Float32, 1, 1, 50)
		copy(end.Data, want.Data[len(want.Data)-len(end.Data):])
		if err := modeltest.Compare(decode(t, last, tokens, 0, 6, nil)["logits"], end); err != nil {
			t.Errorf("%s, the last alone: %v", name, err)
		}
	}
}

// TestPastIsNamedAsExportersNameIt: inputs and outputs, and the symbols of their extents.
func TestPastIsNamedAsExportersNameIt(t *testing.T) {
	m, err := Build("llama-tiny", Options{Past: true})
	if err != nil {
		t.Fatal(err)
	}
	describe := func(list []*onnx.ValueInfo) (texts []string) {
		for _, v := range list {
			text := v.Name
			for _, d := range v.Shape {
				if d.Value < 0 {
					text += ", " + d.Param
				} else {
					text += fmt.Sprint(", ", d.Value)
				}
			}
			texts = append(texts, text)
		}
		return texts
	}
	inputs, outputs := describe(m.Graph.Inputs), describe(m.Graph.Outputs)
	if want := []string{"input_ids, batch, sequence", "position_ids, batch, sequence", "past_key_values.0.key, batch, 4, past, 8",
		"past_key_values.0.value, batch, 4, past, 8"}; !slices.Equal(inputs[:4], want) || len(inputs) != 12 {
		t.Errorf("inputs are %q, want %q and so on", inputs, want)
	}
	if want := []string{"logits, batch, sequence, 512", "present.0.key, batch, 4, past + sequence, 8"}; !slices.Equal(outputs[:2], want) || len(outputs) != 11 {
		t.Errorf("outputs are %q, want %q and so on", outputs, want)
	}
	for _, c := range []struct {
		name    string
		options Options
		want    string
	}{
		{"bert-tiny", Options{Past: true}, "not a decoder"}, {"mlp", Options{Last: true}, "not a decoder"}, {"gpt-small", Options{Past: true, Fused: true}, "only a llama"},
		{"llama-tiny", Options{Fused: true}, "only a llama with a past"}, {"llama-tiny", Options{Past: true, Seq: 5}, "either open or given"},
	} {
		if err := Check(c.name, c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: got %v, want %q", c.name, c.options, err, c.want)
		}
	}
}
