package modelzoo

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// llama is Touvron et al. 2023: a decoder with rotary positions, root-mean-square normalisation, gated dense layers
// and groups of heads that share keys and values (Ainslie et al. 2023), in operators of opset 17 as exporters write
// them. The embedding table is also used for the scores.
type llama struct {
	layers                             int
	width, heads, keyHeads, ffn, words int64
}

const (
	llamaEpsilon = 1e-5
	ropeBase     = 10000
)

func (t llama) build(b *builder, s size) {
	tokens := b.input("input_ids", array.Int64, s.batch, s.seq)
	table := b.weights("embedding", 0, 1, t.words, t.width)
	x, layers := b.gather(table, tokens, 0), t.plain
	if s.fused {
		layers = t.fused
	}
	x, p := layers(b, s, x, tokens)
	b.logits(b.matmulTable(b.last(x, s), table), s)
	p.outputs()
}

// plain adds the layers in ONNX operators; the past is nil unless requested.
func (t llama) plain(b *builder, s size, x, tokens string) (string, *past) {
	head := t.width / t.heads
	if s.past {
		cosine, sine := b.rotationsAt(b.input("position_ids", array.Int64, s.batch, s.seq), head)
		p := b.pastOf(tokens, t.layers, s.batch, t.keyHeads, head)
		visible := p.visible()
		mask := b.add("Where", b.shapes[visible], []string{visible, b.scalar(0), b.scalar(-math.MaxFloat32)})
		return t.all(b, x, cosine, sine, mask, p), p
	}
	length := s.seq
	if b.open {
		length = s.max
	}
	cosine, sine := b.rotations(length, head)
	mask := b.hidden(length)
	if b.open {
		cosine, sine = b.upTo(cosine, tokens, []int64{1, 1, s.seq, head}, 2), b.upTo(sine, tokens, []int64{1, 1, s.seq, head}, 2)
		mask = b.upTo(mask, tokens, []int64{1, 1, s.seq, s.seq}, 2, 3)
	}
	return t.all(b, x, cosine, sine, mask, nil), nil
}

// all adds all layers, and the final normalisation.
func (t llama) all(b *builder, x, cosine, sine, mask string, p *past) string {
	for range t.layers {
		x = b.sum(x, t.attention(b, b.rmsNorm(x, llamaEpsilon), cosine, sine, mask, p))
		x = b.sum(x, t.gated(b, b.rmsNorm(x, llamaEpsilon)))
	}
	return b.rmsNorm(x, llamaEpsilon)
}

// attention adds the attention of one layer; p is nil without a past.
func (t llama) attention(b *builder, x, cosine, sine, mask string, p *past) string {
	head := t.width / t.heads
	q := b.rotated(b.heads(b.unbiased(x, t.width), t.heads), cosine, sine)
	k := b.rotated(b.heads(b.unbiased(x, t.keyHeads*head), t.keyHeads), cosine, sine)
	v := b.heads(b.unbiased(x, t.keyHeads*head), t.keyHeads)
	if p != nil {
		k, v = p.extended(k, v)
	}
	keys := b.transpose(b.repeated(k, t.heads/t.keyHeads), 0, 1, 3, 2)
	scores := b.product(b.matmul(q, keys), b.scalar(1/b.scale(q)))
	y := b.matmul(b.softmax(b.sum(scores, mask)), b.repeated(v, t.heads/t.keyHeads))
	return b.unbiased(b.merged(y), t.width)
}

// gated is a dense layer whose inner features are weighted by others (Shazeer 2020, SwiGLU).
func (t llama) gated(b *builder, x string) string {
	gate := b.silu(b.unbiased(x, t.ffn))
	return b.unbiased(b.product(gate, b.unbiased(x, t.ffn)), t.width)
}

// rmsNorm divides by the root of the mean square over the last axis (Zhang and Sennrich 2019), operator by operator.
func (b *builder) rmsNorm(x string, epsilon float32) string {
	shape := slices.Clone(b.shapes[x])
	width := shape[len(shape)-1]
	shape[len(shape)-1] = 1
	mean := b.add("ReduceMean", shape, []string{b.broadcast("Pow", x, b.scalar(2))}, ints("axes", -1))
	inverse := b.broadcast("Div", b.scalar(1), b.unary("Sqrt", b.sum(mean, b.scalar(epsilon))))
	return b.product(b.weights("norm.scale", 1, 0.2, width), b.product(x, inverse))
}

// rotated rotates pairs of features, half a head apart, by position-dependent angles (Su et al. 2021): x·cos +
// rotate_half(x)·sin.
func (b *builder) rotated(x, cosine, sine string) string {
	s := b.shapes[x]
	half := s[3] / 2
	turned := b.joined(3, b.unary("Neg", b.part(x, 3, half, s[3])), b.part(x, 3, 0, half))
	return b.sum(b.product(x, cosine), b.product(turned, sine))
}

// rotationsAt returns the cosines and sines of rotated at positions (batch, seq): (batch, 1, seq, head).
func (b *builder) rotationsAt(positions string, head int64) (cosine, sine string) {
	at := b.shapes[positions]
	frequencies := array.New(array.Float32, 1, head/2, 1)
	for k := range head / 2 {
		frequencies.SetFloat(k, math.Pow(ropeBase, -2*float64(k)/float64(head)))
	}
	row := b.add("Unsqueeze", []int64{at[0], 1, at[1]}, []string{positions, b.indices(1)})
	row = b.unary("Cast", row, integer("to", int64(onnx.DataType(array.Float32))))
	angles := b.add("MatMul", []int64{at[0], head / 2, at[1]}, []string{b.constant("frequencies", frequencies), row})
	angles = b.transpose(angles, 0, 2, 1)
	angles = b.joined(2, angles, angles)
	perHead := func(x string) string {
		return b.add("Unsqueeze", []int64{at[0], 1, at[1], head}, []string{x, b.indices(1)})
	}
	return perHead(b.unary("Cos", angles)), perHead(b.unary("Sin", angles))
}

// rotations returns the cosines and sines of rotated: (1, 1, seq, head), both halves alike.
func (b *builder) rotations(seq, head int64) (cosine, sine string) {
	c, s := make([]float32, seq*head), make([]float32, seq*head)
	for at := range seq * head {
		angle := float64(at/head) * math.Pow(ropeBase, -2*float64(at%(head/2))/float64(head))
		c[at], s[at] = float32(math.Cos(angle)), float32(math.Sin(angle))
	}
	return b.constant("cosine", array.FromFloat32(c, 1, 1, seq, head)), b.constant("sine", array.FromFloat32(s, 1, 1, seq, head))
}

// hidden is a bias of the scores that masks the tokens after each one.
func (b *builder) hidden(seq int64) string {
	mask := array.New(array.Float32, 1, 1, seq, seq)
	for row := range seq {
		for column := row + 1; column < seq; column++ {
			mask.SetFloat(row*seq+column, -math.MaxFloat32)
		}
	}
	return b.constant("mask", mask)
}

// repeated repeats each head of (batch, heads, seq, features) consecutively.
func (b *builder) repeated(x string, times int64) string {
	s := b.shapes[x]
	if times == 1 {
		return x
	}
	one := b.add("Unsqueeze", []int64{s[0], s[1], 1, s[2], s[3]}, []string{x, b.indices(2)})
	all := []int64{s[0], s[1], times, s[2], s[3]}
	if b.open {
		wide := b.add("Expand", all, []string{one, b.indices(1, 1, times, 1, 1)})
		return b.add("Reshape", []int64{s[0], s[1] * times, s[2], s[3]}, []string{wide, b.indices(0, s[1]*times, -1, s[3])})
	}
	return b.reshape(b.add("Expand", all, []string{one, b.indices(all...)}), s[0], s[1]*times, s[2], s[3])
}
