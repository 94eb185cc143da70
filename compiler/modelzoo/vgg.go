package modelzoo

// vgg is Simonyan and Zisserman 2015 with the given number of convolutions in each stage.
type vgg struct{ depths []int }

func (v vgg) build(b *builder, x string) string {
	for stage, depth := range v.depths {
		for range depth {
			x = b.relu(b.conv(x, convolution{channels: min(512, int64(64)<<stage), kernel: 3, pad: 1, bias: learned}))
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
	return b.softmax(b.dense(x, 10))
}
