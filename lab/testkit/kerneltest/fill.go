package kerneltest

import (
	"math"
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Fill returns arguments of small multiples of 1/8, so that sums and products are exact and comparisons have one
// answer. Limits of axes are between one and the extent, and floating-point numbers beyond them are NaN.
func Fill(w *expr.Workload, seed uint64) []*array.Array {
	rng := rand.New(rand.NewPCG(seed, 1))
	var args []*array.Array
	counts := w.Counts()
	for _, t := range w.Inputs {
		if limit, ok := counts[t]; ok {
			counts[t] = 1 + rng.Int64N(max(limit, 1))
		}
	}
	for _, t := range append(append([]*expr.Tensor{}, w.Inputs...), w.Constants...) {
		a := array.New(t.DType, t.Shape...)
		for i := range a.Len() {
			if t.DType.IsFloat() {
				a.SetFloat(i, float64(rng.IntN(33)-16)/8)
			} else {
				a.SetInt(i, int64(rng.IntN(13)-6))
			}
		}
		if n, ok := counts[t]; ok {
			a.SetInt(0, n)
		} else if len(counts) > 0 && t.Role == expr.Input && t.DType.IsFloat() {
			eachBeyond(t.Shape, limits(w, t, counts), func(i int64) { a.SetFloat(i, math.NaN()) })
		}
		args = append(args, a)
	}
	return args
}
