package modelzoo

import "github.com/tilth-dev/tilth/compiler/array"

// dcganNetwork is the generator of Radford et al. 2016: from 100 random numbers to a 64×64 image.
var dcganNetwork = network{Description{"dcgan", "generator of 64×64 images (Radford et al. 2016)", 0}, 13, 0, dcgan{64}.build}

// dcgan has width channels before the last layer.
type dcgan struct{ width int64 }

func (d dcgan) build(b *builder, s size) {
	x := b.input("data", array.Float32, s.batch, 100, 1, 1)
	x = b.relu(b.batchNorm(b.deconv(x, convolution{channels: 8 * d.width, kernel: 4})))
	for _, channels := range []int64{4 * d.width, 2 * d.width, d.width} {
		x = b.relu(b.batchNorm(b.deconv(x, convolution{channels: channels, kernel: 4, stride: 2, pad: 1})))
	}
	b.output(b.unary("Tanh", b.deconv(x, convolution{channels: 3, kernel: 4, stride: 2, pad: 1})), "out")
}
