package modelzoo

// shufflenetV2 is Ma et al. 2018: units that convolve half of the channels and shuffle both halves. The widths are
// those of the stages, and of the last convolution.
type shufflenetV2 struct {
	widths [3]int64
	last   int64
}

func (n shufflenetV2) build(b *builder, x string) string {
	x = b.relu(b.conv(x, convolution{channels: 24, kernel: 3, stride: 2, pad: 1}))
	x = b.maxPool(x, 3, 2, 1)
	for stage, depth := range []int{4, 8, 4} {
		x = shuffleDown(b, x, n.widths[stage])
		for range depth - 1 {
			x = shuffleUnit(b, x)
		}
	}
	return b.classify(pointwise(b, x, n.last, (*builder).relu), 1000)
}

// shuffleUnit leaves the first half of the channels unchanged.
func shuffleUnit(b *builder, x string) string {
	half := b.shapes[x][1] / 2
	shape := []int64{b.shapes[x][0], half, b.shapes[x][2], b.shapes[x][3]}
	halves := b.addAll("Split", [][]int64{shape, shape}, []string{x, b.indices(half, half)}, integer("axis", 1))
	return b.shuffled(b.concat(halves[0], shuffleBranch(b, halves[1], half, 1)))
}

// shuffleDown halves the resolution, in two branches that both read all channels.
func shuffleDown(b *builder, x string, channels int64) string {
	left := depthwise(b, x, 3, 2, linear)
	left = pointwise(b, left, channels/2, (*builder).relu)
	return b.shuffled(b.concat(left, shuffleBranch(b, x, channels/2, 2)))
}

func shuffleBranch(b *builder, x string, channels, stride int64) string {
	x = pointwise(b, x, channels, (*builder).relu)
	x = depthwise(b, x, 3, stride, linear)
	return pointwise(b, x, channels, (*builder).relu)
}

// shuffled interleaves the channels of both halves.
func (b *builder) shuffled(x string) string {
	s := b.shapes[x]
	x = b.transpose(b.reshape(x, s[0], 2, s[1]/2, s[2], s[3]), 0, 2, 1, 3, 4)
	return b.reshape(x, s...)
}
