package cpu

import (
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/target"
)

// RatesBetween estimates the rates of a target from those of the same machine with fewer and with more threads.
// Arithmetic and caches scale with threads, but a few threads may saturate the memory.
func RatesBetween(few, many backend.Measured, t *target.Target) roofline.Rates {
	fewThreads, manyThreads := few.Target.CPU.Threads, many.Target.CPU.Threads
	if manyThreads <= fewThreads || len(few.Rates.Stores) != len(many.Rates.Stores) {
		return many.Rates
	}
	share := float64(t.CPU.Threads-fewThreads) / float64(manyThreads-fewThreads)
	mix := func(a, b float64) float64 { return a + share*(b-a) }
	r := roofline.Rates{FlopPerSecond: mix(few.Rates.FlopPerSecond, many.Rates.FlopPerSecond), Stores: storesOf(t)}
	last := len(r.Stores) - 1
	for i := range r.Stores {
		r.Stores[i].BytesPerSecond = mix(few.Rates.Stores[i].BytesPerSecond, many.Rates.Stores[i].BytesPerSecond)
	}
	alone := few.Rates.Stores[last].BytesPerSecond / float64(fewThreads)
	r.Stores[last].BytesPerSecond = min(many.Rates.Stores[last].BytesPerSecond, alone*float64(t.CPU.Threads))
	return r
}
