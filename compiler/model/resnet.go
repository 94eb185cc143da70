package model

// residualGain scales the last convolution of a residual branch, so that sums over many blocks do not grow.
const residualGain = 0.3

// block is a residual block of a width and a stride; it multiplies the width by the network's expansion.
type block func(b *builder, x string, width, stride int64) string

// resnet is He et al. 2016 ("Deep residual learning"), with the stride of a bottleneck in its 3×3 convolution and batch
// normalisation folded, as exporters leave it.
func resnet(b *builder, x string, unit block, expansion int64, depths ...int) string {
	x = b.relu(b.conv(x, convolution{channels: 64, kernel: 7, stride: 2, pad: 3}))
	x = b.maxPool(x, 3, 2, 1)
	for stage, depth := range depths {
		width := int64(64) << stage
		for k := range depth {
			stride := int64(1)
			if k == 0 && stage > 0 {
				stride = 2
			}
			branch := unit(b, x, width, stride)
			if b.shapes[x][1] != width*expansion || stride != 1 {
				x = b.conv(x, convolution{channels: width * expansion, kernel: 1, stride: stride})
			}
			x = b.relu(b.sum(branch, x))
		}
	}
	return classify(b, x)
}

func classify(b *builder, x string) string { return b.dense(b.flatten(b.globalAveragePool(x)), 1000) }

func basicBlock(b *builder, x string, width, stride int64) string {
	x = b.relu(b.conv(x, convolution{channels: width, kernel: 3, stride: stride, pad: 1}))
	return b.conv(x, convolution{channels: width, kernel: 3, pad: 1, gain: residualGain})
}

func bottleneck(b *builder, x string, width, stride int64) string {
	x = b.relu(b.conv(x, convolution{channels: width, kernel: 1}))
	x = b.relu(b.conv(x, convolution{channels: width, kernel: 3, stride: stride, pad: 1}))
	return b.conv(x, convolution{channels: 4 * width, kernel: 1, gain: residualGain})
}

// resnetV2 is the pre-activation form (He et al. 2016, "Identity mappings"), with its batch normalisations as they are.
func resnetV2(b *builder, x string, depths ...int) string {
	x = b.conv(x, convolution{channels: 64, kernel: 7, stride: 2, pad: 3, noBias: true})
	x = b.maxPool(b.relu(b.batchNorm(x)), 3, 2, 1)
	for stage, depth := range depths {
		width := int64(64) << stage
		for k := range depth {
			stride := int64(1)
			if k == 0 && stage > 0 {
				stride = 2
			}
			x = preActivation(b, x, width, stride, k == 0)
		}
	}
	return classify(b, b.relu(b.batchNorm(x)))
}

// preActivation is a bottleneck that normalises before it convolves; with a projection beside it where the shape changes.
func preActivation(b *builder, x string, width, stride int64, project bool) string {
	active := b.relu(b.batchNorm(x))
	y := b.conv(active, convolution{channels: width, kernel: 1, noBias: true})
	y = b.conv(b.relu(b.batchNorm(y)), convolution{channels: width, kernel: 3, stride: stride, pad: 1, noBias: true})
	y = b.conv(b.relu(b.batchNorm(y)), convolution{channels: 4 * width, kernel: 1, gain: residualGain, noBias: true})
	if project {
		x = b.conv(active, convolution{channels: 4 * width, kernel: 1, stride: stride, noBias: true})
	}
	return b.sum(y, x)
}
