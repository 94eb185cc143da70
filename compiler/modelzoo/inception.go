package modelzoo

// inceptionV3 is Szegedy et al. 2016 ("Rethinking the Inception architecture") without the auxiliary classifier.
// Channel counts are divided by narrower, which is 1 in the published network.
type inceptionV3 struct{ narrower int64 }

func (v inceptionV3) build(b *builder, x string) string {
	i := inception{b, v.narrower}
	x = i.square(i.square(i.reduce(x, 32), 32, 0), 64, 1)
	x = i.square(i.one(b.maxPool(x, 3, 2, 0), 80), 192, 0)
	x = b.maxPool(x, 3, 2, 0)
	for _, pooled := range []int64{32, 64, 64} {
		x = i.local(x, pooled)
	}
	x = i.concat(i.reduce(x, 384), i.reduce(i.square(i.one(x, 64), 96, 1), 96), i.maxPool(x, 3, 2, 0))
	for _, inner := range []int64{128, 160, 160, 192} {
		x = i.long(x, inner)
	}
	long := i.down(i.across(i.one(x, 192), 192, 7), 192, 7)
	x = i.concat(i.reduce(i.one(x, 192), 320), i.reduce(long, 192), i.maxPool(x, 3, 2, 0))
	x = i.wide(i.wide(x))
	return b.classify(x, 1000)
}

// inception builds the layers of the network; every convolution ends in a Relu.
type inception struct {
	*builder
	narrower int64
}

// convolve is a convolution and a Relu.
func (i inception) convolve(x string, w window, channels int64) string {
	return i.relu(i.windowed(x, w, convolution{channels: channels / i.narrower}))
}

func (i inception) one(x string, channels int64) string {
	return i.convolve(x, cube(2, 1, 1, 0), channels)
}

func (i inception) square(x string, channels, pad int64) string {
	return i.convolve(x, cube(2, 3, 1, pad), channels)
}

// reduce halves the resolution.
func (i inception) reduce(x string, channels int64) string {
	return i.convolve(x, cube(2, 3, 2, 0), channels)
}

// across and down are one-dimensional convolutions along the rows and the columns of the image.
func (i inception) across(x string, channels, kernel int64) string {
	return i.convolve(x, window{[]int64{1, kernel}, []int64{1, 1}, []int64{0, kernel / 2}}, channels)
}

func (i inception) down(x string, channels, kernel int64) string {
	return i.convolve(x, window{[]int64{kernel, 1}, []int64{1, 1}, []int64{kernel / 2, 0}}, channels)
}

// pooled is the branch that averages before it mixes channels.
func (i inception) pooled(x string, channels int64) string {
	return i.one(i.averagePool(x, 3, 1, 1), channels)
}

// local is figure 5 of the paper, with the original 5×5 convolution.
func (i inception) local(x string, pooled int64) string {
	five := i.convolve(i.one(x, 48), cube(2, 5, 1, 2), 64)
	double := i.square(i.square(i.one(x, 64), 96, 1), 96, 1)
	return i.concat(i.one(x, 64), five, double, i.pooled(x, pooled))
}

// long is figure 6: 7×7 convolutions as pairs of one-dimensional ones.
func (i inception) long(x string, inner int64) string {
	single := i.down(i.across(i.one(x, inner), inner, 7), 192, 7)
	double := i.down(i.across(i.down(i.one(x, inner), inner, 7), inner, 7), inner, 7)
	return i.concat(i.one(x, 192), single, i.across(double, 192, 7), i.pooled(x, 192))
}

// wide is figure 7: the last convolutions of a branch side by side.
func (i inception) wide(x string) string {
	both := func(y string) string { return i.concat(i.across(y, 384, 3), i.down(y, 384, 3)) }
	return i.concat(i.one(x, 320), both(i.one(x, 384)), both(i.square(i.one(x, 448), 384, 1)), i.pooled(x, 192))
}
