package models

import (
	"math/rand/v2"
	"strings"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/npz"
)

// pastExtent is the symbol of the past positions of a decoder.
const pastExtent = "past"

// tokenLimit is below the vocabulary size of every language model in the suite.
const tokenLimit = 500

// readInputs reads an .npz file. With an empty path it draws random inputs: numbers in [-1, 1), tokens, masks of
// ones, and positions after the past ones. Symbolic extents take the given values, or else their maximum.
func readInputs(path string, manifest *aot.Manifest, extents map[string]int64) (map[string]*array.Array, error) {
	if path != "" {
		return npz.ReadFile(path)
	}
	rng := rand.New(rand.NewPCG(1, 0))
	inputs := map[string]*array.Array{}
	for _, t := range manifest.Inputs {
		a := array.New(t.Type(), manifest.ShapeOf(t, extents)...)
		for i := range a.Len() {
			switch {
			case t.Type().IsFloat():
				a.SetFloat(i, rng.Float64()*2-1)
			case strings.Contains(t.Name, "mask"):
				a.SetInt(i, 1)
			case strings.Contains(t.Name, "position"):
				a.SetInt(i, extents[pastExtent]+i%a.Shape[len(a.Shape)-1])
			case !strings.Contains(t.Name, "type"):
				a.SetInt(i, rng.Int64N(tokenLimit))
			}
		}
		inputs[t.Name] = a
	}
	return inputs, nil
}
