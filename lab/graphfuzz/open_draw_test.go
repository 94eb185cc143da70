package graphfuzz

import (
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// OpenExtent is the symbol of the extent that OpenUp opens.
const OpenExtent = "n"

// OpenUp makes an axis of an input symbolic, and those of other inputs with the same extent. ok is false if no axis
// is suitable.
func (c *Case) OpenUp() (most int64, ok bool) {
	rng := rand.New(rand.NewPCG(c.Seed, 2))
	type place struct{ input, axis int }
	var places []place
	for k, in := range c.Model.Graph.Inputs {
		for axis, d := range in.Shape {
			if d.Value > 3 {
				places = append(places, place{k, axis})
			}
		}
	}
	if len(places) == 0 {
		return 0, false
	}
	chosen := places[rng.IntN(len(places))]
	most = c.Model.Graph.Inputs[chosen.input].Shape[chosen.axis].Value
	for _, p := range places {
		d := &c.Model.Graph.Inputs[p.input].Shape[p.axis]
		if p == chosen || d.Value == most && rng.IntN(2) == 0 {
			*d = onnx.Dim{Value: -1, Param: OpenExtent}
		}
	}
	return most, true
}

// At returns the inputs, cut to n elements of the open extent, and the options that fix it.
func (c *Case) At(n int64) (inputs map[string]*array.Array, options frontend.Options) {
	inputs = map[string]*array.Array{}
	for _, in := range c.Model.Graph.Inputs {
		a := c.Inputs[in.Name]
		for axis, d := range in.Shape {
			if d.Value < 0 {
				a = a.Head(axis, n)
			}
		}
		inputs[in.Name] = a
	}
	return inputs, frontend.Options{Shapes: map[string][]int64{OpenExtent: {n}}}
}
