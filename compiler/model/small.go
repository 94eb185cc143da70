package model

// mobilenetV1 is Howard et al. 2017, width 1: depthwise 3×3 and 1×1 convolutions in turn.
func mobilenetV1(b *builder, x string) string {
	x = b.relu6(b.conv(x, convolution{channels: 32, kernel: 3, stride: 2, pad: 1}))
	for _, layer := range []struct{ channels, stride int64 }{
		{64, 1}, {128, 2}, {128, 1}, {256, 2}, {256, 1}, {512, 2}, {512, 1}, {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1},
	} {
		x = depthwise(b, x, layer.stride)
		x = b.relu6(b.conv(x, convolution{channels: layer.channels, kernel: 1}))
	}
	return classify(b, x)
}

func depthwise(b *builder, x string, stride int64) string {
	c := b.shapes[x][1]
	return b.relu6(b.conv(x, convolution{channels: c, kernel: 3, stride: stride, pad: 1, groups: c}))
}

// mobilenetV2 is Sandler et al. 2018, width 1: inverted residuals.
func mobilenetV2(b *builder, x string) string {
	x = b.relu6(b.conv(x, convolution{channels: 32, kernel: 3, stride: 2, pad: 1}))
	for _, stage := range []struct {
		expansion, channels int64
		depth               int
		stride              int64
	}{{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}} {
		for k := range stage.depth {
			stride := int64(1)
			if k == 0 {
				stride = stage.stride
			}
			x = invertedResidual(b, x, stage.expansion, stage.channels, stride)
		}
	}
	x = b.relu6(b.conv(x, convolution{channels: 1280, kernel: 1}))
	return classify(b, x)
}

func invertedResidual(b *builder, x string, expansion, channels, stride int64) string {
	in := b.shapes[x][1]
	y := x
	if expansion != 1 {
		y = b.relu6(b.conv(y, convolution{channels: in * expansion, kernel: 1}))
	}
	y = b.conv(depthwise(b, y, stride), convolution{channels: channels, kernel: 1})
	if stride == 1 && in == channels {
		return b.sum(x, y)
	}
	return y
}

// squeezenet is SqueezeNet 1.1 (Iandola et al. 2016).
func squeezenet(b *builder, x string) string {
	x = b.relu(b.conv(x, convolution{channels: 64, kernel: 3, stride: 2}))
	x = fire(b, fire(b, b.maxPool(x, 3, 2, 0), 16, 64), 16, 64)
	x = fire(b, fire(b, b.maxPool(x, 3, 2, 0), 32, 128), 32, 128)
	x = fire(b, fire(b, b.maxPool(x, 3, 2, 0), 48, 192), 48, 192)
	x = fire(b, fire(b, x, 64, 256), 64, 256)
	x = b.relu(b.conv(x, convolution{channels: 1000, kernel: 1}))
	return b.flatten(b.globalAveragePool(x))
}

// fire squeezes to few channels and expands by 1×1 and 3×3 convolutions side by side.
func fire(b *builder, x string, squeeze, expand int64) string {
	x = b.relu(b.conv(x, convolution{channels: squeeze, kernel: 1}))
	left := b.relu(b.conv(x, convolution{channels: expand, kernel: 1}))
	right := b.relu(b.conv(x, convolution{channels: expand, kernel: 3, pad: 1}))
	return b.concat(left, right)
}

// vgg is Simonyan and Zisserman 2015 with the given number of convolutions in each stage.
func vgg(b *builder, x string, depths ...int) string {
	for stage, depth := range depths {
		for range depth {
			x = b.relu(b.conv(x, convolution{channels: min(512, int64(64)<<stage), kernel: 3, pad: 1}))
		}
		x = b.maxPool(x, 2, 2, 0)
	}
	x = b.relu(b.dense(b.flatten(x), 4096))
	x = b.relu(b.dense(x, 4096))
	return b.dense(x, 1000)
}

// mlp classifies 28×28 images, given as vectors, into 10 classes.
func mlp(b *builder, x string) string {
	x = b.relu(b.dense(x, 256))
	x = b.relu(b.dense(x, 128))
	x = b.dense(x, 10)
	return b.add("Softmax", b.shapes[x], []string{x}, integer("axis", -1))
}
