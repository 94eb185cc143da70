package cost

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Constants describes the constants that the kernel reads.
type Constants struct {
	// Bytes is their size as read, Given as the workload has them, and Packed the part of Bytes that is laid out anew.
	Bytes, Given, Packed float64
	// Prefetch is the prefetch distance in bytes.
	Prefetch float64
}

func constantsOf(s *schedule.Schedule) (k Constants) {
	size := func(t *expr.Tensor) float64 { return float64(array.Elements(t.Shape) * t.DType.Bytes()) }
	for c, t := range s.Workload.Constants {
		k.Given += size(t)
		if tr := s.Transforms[c]; tr != nil {
			t = tr.Tensor
		}
		k.Bytes += size(t)
		if s.Packs[c] != nil {
			k.Packed += size(t)
		}
		k.Prefetch = max(k.Prefetch, float64(s.Prefetches[c]))
	}
	return k
}
