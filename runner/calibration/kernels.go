package calibration

import "math"

// steps of a compute kernel's sample take two milliseconds or so.
const steps = 1_000_000

// compute runs multiply-adds in registers: four chains, each step of which depends on the one before. It feels the
// processor's clock and the time that it is taken away, and nothing else.
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

// read adds up a buffer that no cache holds: it feels the memory, and neighbours that use it.
func read(words []uint64) (sum uint64) {
	var a, b, c, d uint64
	for ; len(words) >= 32; words = words[32:] {
		w := words[:32]
		// One word of each line, so that the processor waits for the memory and not for additions.
		a += w[0]
		b += w[8]
		c += w[16]
		d += w[24]
	}
	return a + b + c + d
}
