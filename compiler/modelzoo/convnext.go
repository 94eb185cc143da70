package modelzoo

// convnext is Liu et al. 2022 ("A ConvNet for the 2020s"): blocks of a depthwise 7×7 convolution, a channel
// normalisation and two dense layers, exported at opset 17 with channels last between transpositions.
type convnext struct {
	widths []int64
	depths []int
}

const convnextEpsilon = 1e-6

func (n convnext) build(b *builder, x string) string {
	x = b.conv(x, convolution{channels: n.widths[0], kernel: 4, stride: 4, bias: learned})
	x = b.channelNorm(x)
	for stage, depth := range n.depths {
		if stage > 0 {
			x = b.conv(b.channelNorm(x), convolution{channels: n.widths[stage], kernel: 2, stride: 2, bias: learned})
		}
		for range depth {
			x = n.block(b, x)
		}
	}
	x = b.channelNorm(b.globalAveragePool(x))
	return b.dense(b.flatten(x), 1000)
}

// block scales its branch channel by channel.
func (n convnext) block(b *builder, x string) string {
	channels := b.shapes[x][1]
	y := b.conv(x, convolution{channels: channels, kernel: 7, pad: 3, groups: channels, bias: learned})
	y = b.layerNorm(b.transpose(y, 0, 2, 3, 1), convnextEpsilon)
	y = b.linear(b.gelu(b.linear(y, 4*channels)), channels)
	scale := b.weights("scale", residualGain, 0.1, channels, 1, 1)
	return b.sum(b.product(scale, b.transpose(y, 0, 3, 1, 2)), x)
}

// channelNorm normalises the channels of each position.
func (b *builder) channelNorm(x string) string {
	return b.transpose(b.layerNorm(b.transpose(x, 0, 2, 3, 1), convnextEpsilon), 0, 3, 1, 2)
}
