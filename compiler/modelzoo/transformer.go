package modelzoo

import (
	"math"
	"slices"
)

// embedding looks up tokens in an embedding table.
func (b *builder) embedding(tokens string, words, width int64) string {
	table := b.weights("embedding", 0, 1, words, width)
	return b.add("Gather", append(slices.Clone(b.shapes[tokens]), width), []string{table, tokens}, integer("axis", 0))
}

// linear is a dense layer on the last axis of any tensor: a product, and a sum with the bias.
func (b *builder) linear(x string, channels int64) string {
	y := b.unbiased(x, channels)
	return b.sum(b.weights("linear.bias", 0, 0.1, channels), y)
}

// unbiased is linear without a bias.
func (b *builder) unbiased(x string, channels int64) string {
	width := b.shapes[x][len(b.shapes[x])-1]
	return b.matmul(x, b.weights("linear.weight", 0, lecun(width), width, channels))
}

// layerNorm is over the last axis, as one operator.
func (b *builder) layerNorm(x string, epsilon float32) string {
	width := b.shapes[x][len(b.shapes[x])-1]
	inputs := []string{x, b.weights("norm.scale", 1, 0.2, width), b.weights("norm.bias", 0, 0.1, width)}
	return b.add("LayerNormalization", b.shapes[x], inputs, integer("axis", -1), float("epsilon", epsilon))
}

// decomposedLayerNorm is the same as exported below opset 17.
func (b *builder) decomposedLayerNorm(x string, epsilon float32) string {
	shape := slices.Clone(b.shapes[x])
	width := shape[len(shape)-1]
	shape[len(shape)-1] = 1
	mean := func(v string) string { return b.add("ReduceMean", shape, []string{v}, ints("axes", -1)) }
	centred := b.broadcast("Sub", x, mean(x))
	variance := mean(b.broadcast("Pow", centred, b.scalar(2)))
	normal := b.broadcast("Div", centred, b.unary("Sqrt", b.sum(variance, b.scalar(epsilon))))
	return b.sum(b.product(normal, b.weights("norm.scale", 1, 0.2, width)), b.weights("norm.bias", 0, 0.1, width))
}

// matmul multiplies the last two axes; the others are equal, or y lacks them.
func (b *builder) matmul(x, y string) string {
	shape, right := slices.Clone(b.shapes[x]), b.shapes[y]
	shape[len(shape)-1] = right[len(right)-1]
	return b.add("MatMul", shape, []string{x, y})
}

// heads splits the last axis of (batch, seq, width) into heads and moves them before the sequence.
func (b *builder) heads(x string, heads int64) string {
	s := b.shapes[x]
	return b.transpose(b.reshape(x, s[0], s[1], heads, s[2]/heads), 0, 2, 1, 3)
}

// merged is the inverse of heads.
func (b *builder) merged(x string) string {
	s := b.shapes[x]
	return b.reshape(b.transpose(x, 0, 2, 1, 3), s[0], s[2], s[1]*s[3])
}

// scale returns the factor of attention scores, the square root of the head size.
func (b *builder) scale(q string) float32 {
	s := b.shapes[q]
	return float32(math.Sqrt(float64(s[len(s)-1])))
}
