package modelzoo

// residualGain scales the last convolution of a residual branch, so that sums over many blocks do not grow.
const residualGain = 0.3

// block is a residual branch of a width and a stride; it multiplies the width by the network's expansion.
type block func(b *builder, x string, width, stride int64) string

// resnet is He et al. 2016 ("Deep residual learning"), with the stride of a bottleneck in its 3×3 convolution and
// batch normalisation folded, as exporters leave it.
type resnet struct {
	unit      block
	expansion int64
	depths    []int
}

func (r resnet) build(b *builder, x string) string {
	x = b.relu(b.conv(x, convolution{channels: 64, kernel: 7, stride: 2, pad: 3}))
	return b.classify(r.stages(b, b.maxPool(x, 3, 2, 1)), 1000)
}

// stages adds the residual blocks, each stage twice as wide as the one before, at half the resolution.
func (r resnet) stages(b *builder, x string) string {
	for stage, depth := range r.depths {
		width := int64(64) << stage
		for k := range depth {
			stride := int64(1)
			if k == 0 && stage > 0 {
				stride = 2
			}
			branch := r.unit(b, x, width, stride)
			if b.shapes[x][1] != width*r.expansion || stride != 1 {
				x = b.conv(x, convolution{channels: width * r.expansion, kernel: 1, stride: stride})
			}
			x = b.relu(b.sum(branch, x))
		}
	}
	return x
}

func basicBlock(b *builder, x string, width, stride int64) string {
	x = b.relu(b.conv(x, convolution{channels: width, kernel: 3, stride: stride, pad: 1}))
	return b.conv(x, convolution{channels: width, kernel: 3, pad: 1, gain: residualGain})
}

// grouped is the bottleneck of ResNeXt (Xie et al. 2017): groups of 3×3 convolutions, each perGroup channels wide in
// the first stage.
func grouped(groups, perGroup int64) block {
	return func(b *builder, x string, width, stride int64) string {
		inner := width * groups * perGroup / 64
		x = b.relu(b.conv(x, convolution{channels: inner, kernel: 1}))
		x = b.relu(b.conv(x, convolution{channels: inner, kernel: 3, stride: stride, pad: 1, groups: groups}))
		return b.conv(x, convolution{channels: 4 * width, kernel: 1, gain: residualGain})
	}
}

func bottleneck(b *builder, x string, width, stride int64) string {
	x = b.relu(b.conv(x, convolution{channels: width, kernel: 1}))
	x = b.relu(b.conv(x, convolution{channels: width, kernel: 3, stride: stride, pad: 1}))
	return b.conv(x, convolution{channels: 4 * width, kernel: 1, gain: residualGain})
}

// resnet3D is R3D of Tran et al. 2018 ("A closer look at spatiotemporal convolutions"): basic blocks of 3×3×3
// convolutions on the frames of a clip, scored for 400 kinds of action.
type resnet3D struct{ depths []int }

func (r resnet3D) build(b *builder, x string) string {
	stem := window{kernel: []int64{3, 7, 7}, stride: []int64{1, 2, 2}, pad: []int64{1, 3, 3}}
	x = b.relu(b.windowed(x, stem, convolution{channels: 64}))
	return b.classify(resnet{basicBlock, 1, r.depths}.stages(b, x), 400)
}

// resnetV2 is the pre-activation form (He et al. 2016, "Identity mappings"), with separate batch normalisations.
type resnetV2 struct{ depths []int }

func (r resnetV2) build(b *builder, x string) string {
	x = b.conv(x, convolution{channels: 64, kernel: 7, stride: 2, pad: 3, bias: noBias})
	x = b.maxPool(b.relu(b.batchNorm(x)), 3, 2, 1)
	for stage, depth := range r.depths {
		width := int64(64) << stage
		for k := range depth {
			stride := int64(1)
			if k == 0 && stage > 0 {
				stride = 2
			}
			x = preActivation(b, x, width, stride, k == 0)
		}
	}
	return b.classify(b.relu(b.batchNorm(x)), 1000)
}

// preActivation is a bottleneck that normalises before it convolves, with a projection beside it if the shape changes.
func preActivation(b *builder, x string, width, stride int64, project bool) string {
	active := b.relu(b.batchNorm(x))
	y := b.conv(active, convolution{channels: width, kernel: 1, bias: noBias})
	y = b.conv(b.relu(b.batchNorm(y)), convolution{channels: width, kernel: 3, stride: stride, pad: 1, bias: noBias})
	y = b.conv(b.relu(b.batchNorm(y)), convolution{channels: 4 * width, kernel: 1, gain: residualGain, bias: noBias})
	if project {
		x = b.conv(active, convolution{channels: 4 * width, kernel: 1, stride: stride, bias: noBias})
	}
	return b.sum(y, x)
}
