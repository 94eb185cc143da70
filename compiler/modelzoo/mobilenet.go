package modelzoo

// activation is an elementwise function.
type activation func(b *builder, x string) string

func depthwise(b *builder, x string, kernel, stride int64, act activation) string {
	c := b.shapes[x][1]
	return act(b, b.conv(x, convolution{channels: c, kernel: kernel, stride: stride, pad: kernel / 2, groups: c}))
}

// pointwise mixes channels by a 1×1 convolution.
func pointwise(b *builder, x string, channels int64, act activation) string {
	return act(b, b.conv(x, convolution{channels: channels, kernel: 1}))
}

// mobilenetV1 is Howard et al. 2017, width 1: depthwise 3×3 and 1×1 convolutions in turn.
func mobilenetV1(b *builder, x string) string {
	x = b.relu6(b.conv(x, convolution{channels: 32, kernel: 3, stride: 2, pad: 1}))
	for _, layer := range []struct{ channels, stride int64 }{
		{64, 1}, {128, 2}, {128, 1}, {256, 2}, {256, 1}, {512, 2}, {512, 1}, {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1},
	} {
		x = depthwise(b, x, 3, layer.stride, (*builder).relu6)
		x = pointwise(b, x, layer.channels, (*builder).relu6)
	}
	return b.classify(x, 1000)
}

// inverted is a residual block that is wide inside (Sandler et al. 2018).
type inverted struct {
	expanded, channels, kernel, stride int64
	act                                activation
	// attend weights the wide channels; nil leaves them unchanged.
	attend func(b *builder, x string) string
}

func (v inverted) build(b *builder, x string) string { return v.narrowed(b, x, v.widened(b, x)) }

// widened is the block's first convolution, unless it is as wide as its input.
func (v inverted) widened(b *builder, x string) string {
	if v.expanded == b.shapes[x][1] {
		return x
	}
	return pointwise(b, x, v.expanded, v.act)
}

// narrowed is the rest of the block, and the sum with its input x.
func (v inverted) narrowed(b *builder, x, wide string) string {
	y := depthwise(b, wide, v.kernel, v.stride, v.act)
	if v.attend != nil {
		y = v.attend(b, y)
	}
	y = b.conv(y, convolution{channels: v.channels, kernel: 1})
	if v.stride == 1 && b.shapes[x][1] == v.channels {
		return b.sum(x, y)
	}
	return y
}

// attention weights channels by two 1×1 convolutions of their means (Hu et al. 2018, squeeze and excitation).
func attention(squeeze int64, act, gate activation) func(b *builder, x string) string {
	return func(b *builder, x string) string {
		y := b.conv(b.globalAveragePool(x), convolution{channels: squeeze, kernel: 1, bias: learned})
		y = b.conv(act(b, y), convolution{channels: b.shapes[x][1], kernel: 1, bias: learned})
		return b.product(gate(b, y), x)
	}
}

// mobilenetV2 is Sandler et al. 2018, width 1.
func mobilenetV2(b *builder, x string) string {
	x = b.relu6(b.conv(x, convolution{channels: 32, kernel: 3, stride: 2, pad: 1}))
	for _, stage := range []struct {
		expansion, channels int64
		depth               int
		stride              int64
	}{{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}} {
		for k := range stage.depth {
			v := inverted{expanded: stage.expansion * b.shapes[x][1], channels: stage.channels, kernel: 3, stride: 1, act: (*builder).relu6}
			if k == 0 {
				v.stride = stage.stride
			}
			x = v.build(b, x)
		}
	}
	return b.classify(pointwise(b, x, 1280, (*builder).relu6), 1000)
}

// mobilenetV3 is the large network of Howard et al. 2019 (table 1), with a hidden layer in the classifier.
func mobilenetV3(b *builder, x string) string {
	swish := (*builder).hardSwish
	x = swish(b, b.conv(x, convolution{channels: 16, kernel: 3, stride: 2, pad: 1}))
	for _, block := range mobilenetV3Blocks(1) {
		x = block.build(b, x)
	}
	x = b.classify(pointwise(b, x, 960, swish), 1280)
	return b.dense(swish(b, x), 1000)
}

// mobilenetV3Blocks returns the blocks of the large network, of which the last three are narrower by a divisor.
func mobilenetV3Blocks(divisor int64) (blocks []inverted) {
	relu, swish := (*builder).relu, (*builder).hardSwish
	for _, v := range []struct {
		kernel, expanded, channels, squeeze int64
		act                                 activation
		stride                              int64
	}{
		{3, 16, 16, 0, relu, 1}, {3, 64, 24, 0, relu, 2}, {3, 72, 24, 0, relu, 1},
		{5, 72, 40, 24, relu, 2}, {5, 120, 40, 32, relu, 1}, {5, 120, 40, 32, relu, 1},
		{3, 240, 80, 0, swish, 2}, {3, 200, 80, 0, swish, 1}, {3, 184, 80, 0, swish, 1}, {3, 184, 80, 0, swish, 1},
		{3, 480, 112, 120, swish, 1}, {3, 672, 112, 168, swish, 1},
		{5, 672, 160 / divisor, 168, swish, 2},
		{5, 960 / divisor, 160 / divisor, 240 / divisor, swish, 1}, {5, 960 / divisor, 160 / divisor, 240 / divisor, swish, 1},
	} {
		block := inverted{expanded: v.expanded, channels: v.channels, kernel: v.kernel, stride: v.stride, act: v.act}
		if v.squeeze > 0 {
			block.attend = attention(v.squeeze, relu, (*builder).hardSigmoid)
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// efficientnet is EfficientNet-B0 (Tan and Le 2019, table 1).
func efficientnet(b *builder, x string) string {
	silu := (*builder).silu
	x = silu(b, b.conv(x, convolution{channels: 32, kernel: 3, stride: 2, pad: 1}))
	for _, stage := range []struct {
		expansion, kernel, stride, channels int64
		depth                               int
	}{
		{1, 3, 1, 16, 1}, {6, 3, 2, 24, 2}, {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3}, {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1},
	} {
		for k := range stage.depth {
			in := b.shapes[x][1]
			v := inverted{expanded: stage.expansion * in, channels: stage.channels, kernel: stage.kernel, stride: 1, act: silu,
				attend: attention(in/4, silu, sigmoid)}
			if k == 0 {
				v.stride = stage.stride
			}
			x = v.build(b, x)
		}
	}
	return b.classify(pointwise(b, x, 1280, silu), 1000)
}
