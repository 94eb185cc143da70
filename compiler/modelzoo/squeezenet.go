package modelzoo

// squeezenet is SqueezeNet 1.1 (Iandola et al. 2016).
func squeezenet(b *builder, x string) string {
	x = b.relu(b.conv(x, convolution{channels: 64, kernel: 3, stride: 2, bias: learned}))
	x = fire(b, fire(b, b.maxPool(x, 3, 2, 0), 16, 64), 16, 64)
	x = fire(b, fire(b, b.maxPool(x, 3, 2, 0), 32, 128), 32, 128)
	x = fire(b, fire(b, b.maxPool(x, 3, 2, 0), 48, 192), 48, 192)
	x = fire(b, fire(b, x, 64, 256), 64, 256)
	x = b.relu(b.conv(x, convolution{channels: 1000, kernel: 1, bias: learned}))
	return b.flatten(b.globalAveragePool(x))
}

// fire squeezes to few channels and expands by 1×1 and 3×3 convolutions side by side.
func fire(b *builder, x string, squeeze, expand int64) string {
	x = b.relu(b.conv(x, convolution{channels: squeeze, kernel: 1, bias: learned}))
	left := b.relu(b.conv(x, convolution{channels: expand, kernel: 1, bias: learned}))
	right := b.relu(b.conv(x, convolution{channels: expand, kernel: 3, pad: 1, bias: learned}))
	return b.concat(left, right)
}
