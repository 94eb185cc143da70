package modelzoo

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// fused adds the layers of a llama with a past in operators of ONNX Runtime, as its model builder writes them.
func (t llama) fused(b *builder, s size, x, tokens string) (string, *past) {
	head := t.width / t.heads
	p := b.pastOf(tokens, t.layers, s.batch, t.keyHeads, head)
	lengths, total := p.lengths()
	cosine, sine := b.angles(s.max, head/2)
	y := b.simplifiedNorm(x)
	for range t.layers {
		q, k, v := b.unbiased(y, t.width), b.unbiased(y, t.keyHeads*head), b.unbiased(y, t.keyHeads*head)
		present := []int64{s.batch, t.keyHeads, examplePast + s.seq, head}
		in := p.layers[len(p.present)]
		all := b.addAll("GroupQueryAttention", [][]int64{b.shapes[q], present, present},
			[]string{q, k, v, in[0], in[1], lengths, total, cosine, sine},
			integer("num_heads", t.heads), integer("kv_num_heads", t.keyHeads), integer("do_rotary", 1))
		b.ofRuntime()
		p.present = append(p.present, [2]string{all[1], all[2]})
		y, x = b.skipNorm(x, b.unbiased(all[0], t.width))
		y, x = b.skipNorm(x, t.gated(b, y))
	}
	return y, p
}

// lengths returns the inputs of ONNX Runtime's attention: the positions of the last tokens (batch), and the number
// of tokens including the past.
func (p *past) lengths() (places, total string) {
	to := integer("to", int64(onnx.DataType(array.Int32)))
	total = p.unary("Cast", p.total, to)
	batch := p.add("Slice", []int64{1}, []string{p.add("Shape", []int64{2}, []string{p.tokens}), p.indices(0), p.indices(1)})
	last := p.unary("Cast", p.broadcast("Sub", p.total, p.constant("one", array.FromInt64([]int64{1}))), to)
	return p.add("Expand", p.shapes[p.tokens][:1], []string{last, batch}), total
}

// angles returns the cosines and sines of rotations: (positions, pairs).
func (b *builder) angles(positions, pairs int64) (cosine, sine string) {
	c, s := array.New(array.Float32, positions, pairs), array.New(array.Float32, positions, pairs)
	for at := range positions * pairs {
		angle := float64(at/pairs) * math.Pow(ropeBase, -float64(at%pairs)/float64(pairs))
		c.SetFloat(at, math.Cos(angle))
		s.SetFloat(at, math.Sin(angle))
	}
	return b.constant("cosine", c), b.constant("sine", s)
}

// simplifiedNorm is rmsNorm as one operator.
func (b *builder) simplifiedNorm(x string) string {
	scale := b.weights("norm.scale", 1, 0.2, b.shapes[x][2])
	return b.add("SimplifiedLayerNormalization", b.shapes[x], []string{x, scale}, float("epsilon", llamaEpsilon), integer("axis", -1))
}

// skipNorm adds y to x and normalises the sum, which is the second result.
func (b *builder) skipNorm(x, y string) (normal, sum string) {
	shape := b.shapes[x]
	scale := b.weights("norm.scale", 1, 0.2, shape[2])
	all := b.addAll("SkipSimplifiedLayerNormalization", [][]int64{shape, nil, nil, shape}, []string{x, y, scale}, float("epsilon", llamaEpsilon))
	b.ofRuntime()
	return all[0], all[3]
}

// ofRuntime moves the last node to ONNX Runtime's domain.
func (b *builder) ofRuntime() {
	b.graph.Nodes[len(b.graph.Nodes)-1].Domain = runtimeDomain
}
