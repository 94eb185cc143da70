package runner

import "math"

// steps of a compute sample take about two milliseconds.
const steps = 1_000_000

// compute runs multiply-adds in registers, in four dependent chains. It is sensitive to the processor's clock
// and to lost CPU time only.
func compute(seed float64) float64 {
	a, b, c, d := seed, seed+1, seed+2, seed+3
	for range steps {
		a = a*0.5 + seed
		b = b*0.5 + seed
		c = c*0.5 + seed
		d = d*0.5 + seed
	}
	return math.Max(math.Max(a, b), math.Max(c, d))
}

// read sums a buffer larger than all caches. It is sensitive to the memory and to neighbours that use it.
func read(words []uint64) (sum uint64) {
	var a, b, c, d uint64
	for ; len(words) >= 32; words = words[32:] {
		w := words[:32]
		// One word per cache line makes memory, not additions, the bottleneck.
		a += w[0]
		b += w[8]
		c += w[16]
		d += w[24]
	}
	return a + b + c + d
}
