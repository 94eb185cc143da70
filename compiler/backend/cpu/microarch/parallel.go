package microarch

import "github.com/tilth-dev/tilth/compiler/target"

const (
	// region is the cycles of starting and ending a parallel region. The benchmark of regions in package runtime
	// takes 1.1 to 1.4 us on two threads of an EPYC with AVX-512.
	region = 4000
	// ChunkStart is the cycles of starting a chunk of a region, with empty registers. Estimated.
	ChunkStart = 40
)

// Region returns the cycles of starting and ending a parallel region, which is zero for a single worker.
func Region(t *target.Target) float64 {
	if Workers(t) == 1 {
		return 0
	}
	return region
}

// Workers returns how many threads share the work.
func Workers(t *target.Target) int64 { return int64(max(1, t.CPU.Threads)) }

// Clock is the number of cycles per second. Costs are relative, so it matters only where measured times meet
// estimated ones. It approximates a server with all cores busy, 2.6 to 3.7 GHz on the processors named here.
const Clock = 3.5e9
