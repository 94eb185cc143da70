package kerneltest

import (
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Fill makes arguments of small multiples of 1/8, so that sums and products are exact and comparisons have one
// answer.
func Fill(w *expr.Workload, seed uint64) []*array.Array {
	rng := rand.New(rand.NewPCG(seed, 1))
	var args []*array.Array
	for _, t := range append(append([]*expr.Tensor{}, w.Inputs...), w.Constants...) {
		a := array.New(t.DType, t.Shape...)
		for i := range a.Len() {
			if t.DType.IsFloat() {
				a.SetFloat(i, float64(rng.IntN(33)-16)/8)
			} else {
				a.SetInt(i, int64(rng.IntN(13)-6))
			}
		}
		args = append(args, a)
	}
	return args
}
