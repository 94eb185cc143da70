package modelzoo

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// lstmNetwork is the medium language model of Zaremba et al. 2014: 35 words of 10000, two layers of 650.
var lstmNetwork = network{Description{"lstm", "word language model, 2 layers of 650 (Zaremba et al. 2014)", 35}, 13, 1024, lstm{2, 650, 10000}.build}

type lstm struct{ layers, width, words int64 }

// build reads tokens (seq, batch), as recurrent layers are exported, and scores the word after each.
func (l lstm) build(b *builder, s size) {
	tokens := b.input("tokens", array.Int64, s.seq, s.batch)
	x := b.embedding(tokens, l.words, l.width)
	for range l.layers {
		x = l.layer(b, x)
	}
	b.output(b.linear(x, l.words), "out")
}

func (l lstm) layer(b *builder, x string) string {
	seq, batch := b.shapes[x][0], b.shapes[x][1]
	zeros := b.constant("state", array.New(array.Float32, 1, batch, l.width))
	inputs := []string{x,
		b.weights("lstm.w", 0, lecun(l.width), 1, 4*l.width, l.width), b.weights("lstm.r", 0, lecun(l.width), 1, 4*l.width, l.width),
		b.weights("lstm.bias", 0, 0.1, 1, 8*l.width), "", zeros, zeros}
	y := b.add("LSTM", []int64{seq, 1, batch, l.width}, inputs, integer("hidden_size", l.width),
		&onnx.Attribute{Name: "direction", Type: onnx.AttrString, String: "forward"})
	return b.add("Squeeze", []int64{seq, batch, l.width}, []string{y, b.indices(1)})
}
