package aot

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Adapt returns inputs from a file as the inputs of the model: an array without a name is the only input, and integers
// take the type of the input if it has all of their values.
func (m *Manifest) Adapt(given map[string]*array.Array) (map[string]*array.Array, error) {
	inputs := map[string]*array.Array{}
	for name, a := range given {
		if name == "" && len(m.Inputs) == 1 {
			name = m.Inputs[0].Name
		} else if name == "" {
			return nil, fmt.Errorf("model %s has %d inputs, %s: give them by name in an .npz file", m.Model, len(m.Inputs), describe(m.Inputs))
		}
		inputs[name] = a
	}
	for _, t := range m.Inputs {
		if a := inputs[t.Name]; a != nil && a.DType.IsInt() && t.Type().IsInt() && a.DType != t.Type() {
			inputs[t.Name] = asIntegers(a, t.Type())
		}
	}
	return inputs, nil
}

// asIntegers returns the integers as elements of a type, or unchanged if one is out of its range.
func asIntegers(a *array.Array, d array.DType) *array.Array {
	made := array.New(d, a.Shape...)
	for k := range a.Len() {
		made.SetInt(k, a.Int(k))
		if made.Int(k) != a.Int(k) || a.Int(k) < 0 && (a.DType == array.Uint64) != (d == array.Uint64) {
			return a
		}
	}
	return made
}
