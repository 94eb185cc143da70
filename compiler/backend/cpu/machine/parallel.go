package machine

import "github.com/tilth-dev/tilth/compiler/target"

const (
	// region is the cycles that starting and ending a parallel region costs. The benchmark of regions in package
	// runtime takes 1.1 to 1.4 us on two threads of an EPYC with AVX-512.
	region = 4000
	// ChunkStart is the cycles that beginning a chunk of a region costs, with nothing in registers. Estimated.
	ChunkStart = 40
)

// Region is the cycles that starting and ending a parallel region costs: none where one worker does all.
func Region(t *target.Target) float64 {
	if Workers(t) == 1 {
		return 0
	}
	return region
}

// Workers is how many threads share the work.
func Workers(t *target.Target) int64 { return int64(max(1, t.CPU.Threads)) }

// Clock is the cycles of a second. Costs are compared with one another, so that it matters only where some times are
// measured and others are not: it is about that of a server with all cores busy, 2.6 to 3.7 GHz on those named here.
const Clock = 3.5e9
