package modelzoo

import "math"

// vit is the vision transformer of Dosovitskiy et al. 2021 on 224×224 images, as exported at opset 17: the three
// projections of attention are one packed product, and attention has the sequence before the batch.
type vit struct{ layers, width, heads, patch int64 }

const vitEpsilon = 1e-6

func (t vit) build(b *builder, x string) string {
	batch := b.shapes[x][0]
	x = b.conv(x, convolution{channels: t.width, kernel: t.patch, stride: t.patch, bias: learned})
	patches := b.shapes[x][2] * b.shapes[x][3]
	x = b.transpose(b.reshape(x, batch, t.width, patches), 0, 2, 1)
	class := b.weights("class_token", 0, 1, 1, 1, t.width)
	if batch > 1 {
		class = b.add("Expand", []int64{batch, 1, t.width}, []string{class, b.indices(batch, 1, t.width)})
	}
	x = b.sum(b.concat(class, x), b.weights("positions", 0, 1, 1, patches+1, t.width))
	for range t.layers {
		x = t.layer(b, x)
	}
	x = b.layerNorm(x, vitEpsilon)
	first := b.add("Gather", []int64{batch, 1, t.width}, []string{x, b.indices(0)}, integer("axis", 1))
	return b.dense(b.reshape(first, batch, t.width), 1000)
}

func (t vit) layer(b *builder, x string) string {
	x = b.sum(t.attention(b, b.layerNorm(x, vitEpsilon)), x)
	y := b.linear(b.gelu(b.linear(b.layerNorm(x, vitEpsilon), 4*t.width)), t.width)
	return b.sum(x, y)
}

func (t vit) attention(b *builder, x string) string {
	batch, seq := b.shapes[x][0], b.shapes[x][1]
	packed := b.reshape(b.linear(b.transpose(x, 1, 0, 2), 3*t.width), seq, batch, 3, t.width)
	packed = b.add("Unsqueeze", []int64{1, seq, batch, 3, t.width}, []string{packed, b.indices(0)})
	packed = b.transpose(packed, 3, 1, 2, 0, 4)
	packed = b.add("Squeeze", []int64{3, seq, batch, t.width}, []string{packed, b.indices(3)})
	part := func(k int64) string {
		one := b.add("Gather", []int64{1, seq, batch, t.width}, []string{packed, b.indices(k)}, integer("axis", 0))
		one = b.transpose(b.reshape(one, seq, batch*t.heads, t.width/t.heads), 1, 0, 2)
		return b.reshape(one, batch, t.heads, seq, t.width/t.heads)
	}
	q, k, v := part(0), part(1), part(2)
	y := b.matmul(b.softmax(t.scores(b, q, k)), v)
	y = b.reshape(b.transpose(y, 2, 0, 1, 3), seq*batch, t.width)
	return b.transpose(b.reshape(b.dense(y, t.width), seq, batch, t.width), 1, 0, 2)
}

// scores scales both factors, as exporters do.
func (t vit) scores(b *builder, q, k string) string {
	root := b.scalar(float32(1 / math.Sqrt(float64(b.scale(q)))))
	return b.matmul(b.product(q, root), b.product(b.transpose(k, 0, 1, 3, 2), root))
}
