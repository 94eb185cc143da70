package modelzoo

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// gpt is GPT-2 (Radford et al. 2019): a decoder that scores the next token at every position. The embedding table
// is also used for the scores.
type gpt struct{ layers, width, heads, words int64 }

const gptEpsilon = 1e-5

func (t gpt) build(b *builder, s size) {
	tokens := b.input("input_ids", array.Int64, s.batch, s.seq)
	table := b.weights("embedding", 0, 1, t.words, t.width)
	x := b.add("Gather", []int64{s.batch, s.seq, t.width}, []string{table, tokens}, integer("axis", 0))
	positions := b.weights("positions", 0, 1, 1024, t.width)
	causal := func() string { return b.constant("causal", lowerTriangle(s.seq)) }
	var p *past
	switch {
	case s.past:
		x = b.sum(x, b.gather(positions, b.input("position_ids", array.Int64, s.batch, s.seq), 0))
		p = b.pastOf(tokens, int(t.layers), s.batch, t.heads, t.width/t.heads)
		mask := p.visible()
		causal = func() string { return mask }
	case b.open:
		x = b.sum(x, b.upTo(positions, tokens, []int64{s.seq, t.width}, 0))
		mask := b.upTo(b.constant("causal", lowerTriangle(s.max)), tokens, []int64{1, 1, s.seq, s.seq}, 2, 3)
		causal = func() string { return mask }
	default:
		x = b.sum(x, b.add("Slice", []int64{s.seq, t.width}, []string{positions, b.indices(0), b.indices(s.seq), b.indices(0)}))
	}
	for range t.layers {
		x = t.layer(b, x, causal, p)
	}
	b.logits(b.matmulTable(b.last(b.layerNorm(x, gptEpsilon), s), table), s)
	p.outputs()
}

// matmulTable scores each word by its embedding.
func (b *builder) matmulTable(x, table string) string {
	s := b.shapes[x]
	return b.add("MatMul", []int64{s[0], s[1], b.shapes[table][0]}, []string{x, b.transpose(table, 1, 0)})
}

// layer adds one decoder layer; p is nil without a past.
func (t gpt) layer(b *builder, x string, causal func() string, p *past) string {
	s := b.shapes[x]
	third := []int64{s[0], s[1], t.width}
	qkv := b.addAll("Split", [][]int64{third, third, third},
		[]string{b.projected(b.layerNorm(x, gptEpsilon), 3*t.width), b.indices(t.width, t.width, t.width)}, integer("axis", 2))
	q, v := b.heads(qkv[0], t.heads), b.heads(qkv[2], t.heads)
	k := b.reshape(qkv[1], s[0], s[1], t.heads, t.width/t.heads)
	if p == nil {
		k = b.transpose(k, 0, 2, 3, 1)
	} else {
		k, v = p.extended(b.transpose(k, 0, 2, 1, 3), v)
		k = b.transpose(k, 0, 1, 3, 2)
	}
	scores := b.broadcast("Div", b.matmul(q, k), b.scalar(b.scale(q)))
	y := b.matmul(b.softmax(b.add("Where", b.shapes[scores], []string{causal(), scores, b.scalar(-math.MaxFloat32)})), v)
	x = b.sum(b.projected(b.merged(y), t.width), x)
	y = b.geluTanh(b.projected(b.layerNorm(x, gptEpsilon), 4*t.width))
	return b.sum(x, b.projected(y, t.width))
}

// lowerTriangle is true if a token sees another: itself and those before it.
func lowerTriangle(seq int64) *array.Array {
	mask := array.New(array.Bool, 1, 1, seq, seq)
	for row := range seq {
		for column := range row + 1 {
			mask.SetInt(row*seq+column, 1)
		}
	}
	return mask
}

// projected is a dense layer on the rows of x, between reshapes, as GPT-2's are exported.
func (b *builder) projected(x string, channels int64) string {
	if b.open {
		return b.linear(x, channels)
	}
	s := b.shapes[x]
	width := s[len(s)-1]
	rows := b.reshape(x, array.Elements(s)/width, width)
	inputs := []string{rows, b.weights("dense.weight", 0, lecun(width), width, channels), b.weights("dense.bias", 0, 0.1, channels)}
	y := b.add("Gemm", []int64{b.shapes[rows][0], channels}, inputs)
	return b.reshape(y, append(slices.Clone(s[:len(s)-1]), channels)...)
}
