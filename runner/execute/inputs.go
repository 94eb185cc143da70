package execute

import (
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
)

// MadeUpInputs are the same pseudo-random numbers every time: uniform in [-1, 1), rounded to the input's type, or zero
// where that is no floating point type. A device may compute with zeros faster than with other numbers.
func MadeUpInputs(manifest *aot.Manifest) map[string]*array.Array {
	rng := rand.New(rand.NewPCG(1, 0))
	inputs := map[string]*array.Array{}
	for _, t := range manifest.Inputs {
		values := array.New(t.Type(), t.Shape...)
		if t.Type().IsFloat() {
			data := make([]float32, array.Elements(t.Shape))
			for i := range data {
				data[i] = rng.Float32()*2 - 1
			}
			values = array.FromFloat32(data, t.Shape...).As(t.Type())
		}
		inputs[t.Name] = values
	}
	return inputs
}
