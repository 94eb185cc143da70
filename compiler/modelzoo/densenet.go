package modelzoo

// densenet is Huang et al. 2017 with bottlenecks: a layer reads the results of all earlier layers of its block.
type densenet struct {
	growth int64
	depths []int
}

func (d densenet) build(b *builder, x string) string {
	x = b.relu(b.conv(x, convolution{channels: 2 * d.growth, kernel: 7, stride: 2, pad: 3}))
	x = b.maxPool(x, 3, 2, 1)
	for k, depth := range d.depths {
		if k > 0 {
			x = b.conv(b.relu(b.batchNorm(x)), convolution{channels: b.shapes[x][1] / 2, kernel: 1, bias: noBias})
			x = b.averagePool(x, 2, 2, 0)
		}
		x = d.block(b, x, depth)
	}
	return b.classify(b.relu(b.batchNorm(x)), 1000)
}

func (d densenet) block(b *builder, x string, depth int) string {
	made := []string{x}
	for range depth {
		if len(made) > 1 {
			x = b.concat(made...)
		}
		// The normalisation after the 1×1 convolution is folded into it.
		y := b.relu(b.conv(b.relu(b.batchNorm(x)), convolution{channels: 4 * d.growth, kernel: 1}))
		made = append(made, b.conv(y, convolution{channels: d.growth, kernel: 3, pad: 1, bias: noBias}))
	}
	return b.concat(made...)
}
