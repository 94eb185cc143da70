package modelzoo

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// bert is Devlin et al. 2019: an encoder of 30522 word pieces with a pooled output, operator by operator as exported
// at opset 13.
type bert struct{ layers, width, heads int64 }

const bertEpsilon = 1e-12

func (t bert) build(b *builder, s size) {
	tokens := b.input("input_ids", array.Int64, s.batch, s.seq)
	mask := b.input("attention_mask", array.Int64, s.batch, s.seq)
	types := b.input("token_type_ids", array.Int64, s.batch, s.seq)
	x := b.sum(b.embedding(tokens, 30522, t.width), b.embedding(types, 2, t.width))
	x = b.decomposedLayerNorm(b.sum(x, t.positions(b, tokens, s.seq)), bertEpsilon)
	penalty := t.penalty(b, mask, s)
	for range t.layers {
		x = t.layer(b, x, penalty)
	}
	pooled := t.pooled(b, x, s)
	b.output(x, "last_hidden_state", "batch", "sequence")
	b.output(pooled, "pooler_output", "batch")
}

// positions returns the learned positions up to the sequence length.
func (t bert) positions(b *builder, tokens string, seq int64) string {
	table := b.weights("positions", 0, 1, 512, t.width)
	if b.open {
		return b.add("Unsqueeze", []int64{1, seq, t.width}, []string{b.upTo(table, tokens, []int64{seq, t.width}, 0), b.indices(0)})
	}
	row := make([]int64, seq)
	for k := range row {
		row[k] = int64(k)
	}
	ids := b.reshape(b.indices(row...), 1, seq)
	return b.add("Gather", []int64{1, seq, t.width}, []string{table, ids}, integer("axis", 0))
}

// penalty is 0 for visible tokens and the lowest number for masked ones.
func (t bert) penalty(b *builder, mask string, s size) string {
	x := b.add("Unsqueeze", []int64{s.batch, 1, 1, s.seq}, []string{mask, b.indices(1, 2)})
	x = b.unary("Cast", x, integer("to", int64(onnx.DataType(array.Float32))))
	return b.product(b.broadcast("Sub", b.scalar(1), x), b.scalar(-math.MaxFloat32))
}

func (t bert) layer(b *builder, x, penalty string) string {
	q, k, v := b.heads(b.linear(x, t.width), t.heads), b.linear(x, t.width), b.heads(b.linear(x, t.width), t.heads)
	s := b.shapes[k]
	k = b.transpose(b.reshape(k, s[0], s[1], t.heads, t.width/t.heads), 0, 2, 3, 1)
	scores := b.broadcast("Div", b.matmul(q, k), b.scalar(b.scale(q)))
	y := b.merged(b.matmul(b.softmax(b.sum(scores, penalty)), v))
	x = b.decomposedLayerNorm(b.sum(b.linear(y, t.width), x), bertEpsilon)
	y = b.linear(b.gelu(b.linear(x, 4*t.width)), t.width)
	return b.decomposedLayerNorm(b.sum(y, x), bertEpsilon)
}

// pooled is a layer on the first token.
func (t bert) pooled(b *builder, x string, s size) string {
	first := b.constant("first", array.New(array.Int64))
	y := b.add("Gather", []int64{s.batch, t.width}, []string{x, first}, integer("axis", 1))
	return b.unary("Tanh", b.dense(y, t.width))
}
