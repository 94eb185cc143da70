package execute

import (
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
)

// MadeUpInputs returns pseudo-random inputs, always the same: uniform in [-1, 1), rounded to the input's
// type, or zero for types that are not floating-point. Devices may be faster with zeros than with other
// numbers.
//
// Open extents are taken from extents by name, or else have their maximum.
func MadeUpInputs(manifest *aot.Manifest, extents map[string]int64) map[string]*array.Array {
	rng := rand.New(rand.NewPCG(1, 0))
	inputs := map[string]*array.Array{}
	for _, t := range manifest.Inputs {
		shape := manifest.ShapeOf(t, extents)
		values := array.New(t.Type(), shape...)
		if t.Type().IsFloat() {
			data := make([]float32, array.Elements(shape))
			for i := range data {
				data[i] = rng.Float32()*2 - 1
			}
			values = array.FromFloat32(data, shape...).As(t.Type())
		}
		inputs[t.Name] = values
	}
	return inputs
}
