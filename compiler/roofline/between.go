package roofline

import "github.com/tilth-dev/tilth/compiler/target"

// Between guesses the rates of a target from those of the same machine on fewer and on more threads: arithmetic and
// caches come with each thread alike, but a few threads may ask for all that the memory gives.
func Between(few, many Rates, fewThreads, manyThreads int, t *target.Target) Rates {
	if manyThreads <= fewThreads || len(few.Stores) != len(many.Stores) {
		return many
	}
	share := float64(t.CPU.Threads-fewThreads) / float64(manyThreads-fewThreads)
	mix := func(a, b float64) float64 { return a + share*(b-a) }
	r := Rates{FlopPerSecond: mix(few.FlopPerSecond, many.FlopPerSecond), Stores: storesOf(t)}
	last := len(r.Stores) - 1
	for i := range r.Stores {
		r.Stores[i].BytesPerSecond = mix(few.Stores[i].BytesPerSecond, many.Stores[i].BytesPerSecond)
	}
	alone := few.Stores[last].BytesPerSecond / float64(fewThreads)
	r.Stores[last].BytesPerSecond = min(many.Stores[last].BytesPerSecond, alone*float64(t.CPU.Threads))
	return r
}
