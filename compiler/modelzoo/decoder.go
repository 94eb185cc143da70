package modelzoo

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// examplePast is the sample number of past tokens in shapes; the model has a symbol there.
const examplePast = 96

// past holds the keys and values of earlier tokens for each layer of a decoder. They are inputs, and outputs with
// those of the new tokens appended, named as by Hugging Face's Optimum.
type past struct {
	*builder
	tokens string
	// layers holds the inputs, present the results: keys and values.
	layers, present [][2]string
	// count is the number of past tokens, read that of new ones, total their sum: scalars.
	count, read, total string
}

// pastOf adds the inputs of a past for the given number of layers; keys and values are (batch, heads, past, head).
func (b *builder) pastOf(tokens string, layers int, batch, heads, head int64) *past {
	p := &past{builder: b, tokens: tokens}
	for k := range layers {
		var in [2]string
		for i, what := range pastParts {
			in[i] = b.input(fmt.Sprintf("past_key_values.%d.%s", k, what), array.Float32, batch, heads, examplePast, head)
			b.graph.Inputs[len(b.graph.Inputs)-1].Shape[2] = onnx.Dim{Value: -1, Param: "past"}
		}
		p.layers = append(p.layers, in)
	}
	extent := func(x string, axis int64) string {
		shape := b.add("Shape", []int64{int64(len(b.shapes[x]))}, []string{x})
		return b.add("Gather", nil, []string{shape, b.constant("axis", array.FromInt64([]int64{axis}))}, integer("axis", 0))
	}
	p.count, p.read = extent(p.layers[0][0], 2), extent(tokens, 1)
	p.total = b.sum(p.count, p.read)
	return p
}

var pastParts = [2]string{"key", "value"}

// extended appends the keys and values of a layer, (batch, heads, sequence, head), to those of its past.
func (p *past) extended(keys, values string) (allKeys, allValues string) {
	in := p.layers[len(p.present)]
	allKeys, allValues = p.joined(2, in[0], keys), p.joined(2, in[1], values)
	p.present = append(p.present, [2]string{allKeys, allValues})
	return allKeys, allValues
}

// visible is true if a token sees another, itself and those before it: (sequence, past+sequence).
func (p *past) visible() string {
	seq := p.shapes[p.tokens][1]
	zero, one := p.constant("zero", array.FromInt64([]int64{0})), p.constant("one", array.FromInt64([]int64{1}))
	keys := p.add("Range", []int64{examplePast + seq}, []string{zero, p.total, one})
	queries := p.add("Range", []int64{seq}, []string{p.count, p.total, one})
	column := p.add("Unsqueeze", []int64{seq, 1}, []string{queries, p.indices(1)})
	row := p.add("Unsqueeze", []int64{1, examplePast + seq}, []string{keys, p.indices(0)})
	return p.broadcast("LessOrEqual", row, column)
}

// outputs names the present keys and values as outputs. It is a no-op without a past.
func (p *past) outputs() {
	if p == nil {
		return
	}
	for k, values := range p.present {
		for i, what := range pastParts {
			p.typedOutput(values[i], fmt.Sprintf("present.%d.%s", k, what), array.Float32, "batch", "", "past + sequence")
		}
	}
}

// last returns the last of the tokens (batch, sequence, width), if only that one is requested.
func (b *builder) last(x string, s size) string {
	if !s.last {
		return x
	}
	shape := b.shapes[x]
	return b.add("Slice", []int64{shape[0], 1, shape[2]}, []string{x, b.indices(-1), b.indices(math.MaxInt64), b.indices(1)})
}

// logits adds the output of scores (batch, tokens, words).
func (b *builder) logits(x string, s size) {
	symbols := []string{"batch", "sequence"}
	if s.last {
		symbols = symbols[:1]
	}
	b.output(x, "logits", symbols...)
}
