package modelzoo

// regnet is RegNetY (Radosavovic et al. 2020): bottlenecks as wide inside as outside, of grouped 3×3 convolutions
// whose groups have perGroup channels, with channel attention.
type regnet struct {
	perGroup int64
	stages   []regnetStage
}

type regnetStage struct {
	width int64
	depth int
}

func (r regnet) build(b *builder, x string) string {
	x = b.relu(b.conv(x, convolution{channels: 32, kernel: 3, stride: 2, pad: 1}))
	for _, s := range r.stages {
		for k := range s.depth {
			stride := int64(1)
			if k == 0 {
				stride = 2
			}
			x = r.block(b, x, s.width, stride)
		}
	}
	return b.classify(x, 1000)
}

// block squeezes to a quarter of the channels that it reads.
func (r regnet) block(b *builder, x string, width, stride int64) string {
	in := b.shapes[x][1]
	y := b.relu(b.conv(x, convolution{channels: width, kernel: 1}))
	y = b.relu(b.conv(y, convolution{channels: width, kernel: 3, stride: stride, pad: 1, groups: width / r.perGroup}))
	y = attention(in/4, (*builder).relu, sigmoid)(b, y)
	y = b.conv(y, convolution{channels: width, kernel: 1, gain: residualGain})
	if in != width || stride != 1 {
		x = b.conv(x, convolution{channels: width, kernel: 1, stride: stride})
	}
	return b.relu(b.sum(x, y))
}
