package microarch

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/target"
)

// Memory costs in cycles of one core. Fills overlap with one another and with arithmetic, so they cost less than
// their latency.
const (
	// coldLine is the cost of reading a line of a constant from memory, where it was left since the last execution.
	// 64 bytes in 8 cycles are 25 GB/s at 3.2 GHz, the bandwidth of one core of Zen 4 and of Cascade Lake.
	coldLine = 8
	// prefetchedLine is the remaining cost when a prefetch hides a part behind arithmetic.
	prefetchedLine = 5
	// farther is the factor of both on a core that is far from its memory. One core of Emerald Rapids reads 16 GB/s
	// at 2.9 GHz, 11.5 cycles per line. Default schedules of six models on one thread are best with twice the cycles
	// (resnet-18 1.08 times as fast, resnet-50 1.04, VGG, Inception and DenseNet 1.01), a little less with 1.5.
	farther = 2
	// StreamedWork is the minimum cycles of arithmetic per line of a constant for which prefetching pays. Below it,
	// hardware prefetching keeps up, and explicit requests compete with it. Products of one and two rows, 650 x 2600:
	// 166 and 198 us without prefetching, 214 and 236 us with it; with four rows it pays (Zen 4, AVX2, weights from
	// memory). With AVX-512, products of three, five and six rows take 1.4, 1.3 and 1.2 times as long with it, one of
	// eight rows as long.
	StreamedWork = 3
	// Competing is the factor of the cost of lines that are requested although hardware prefetching keeps up.
	Competing = 1.25
	// Ahead is the fraction of a fill's cost that remains for a panel, which the hardware prefetches. Fitted.
	Ahead = 0.35
	// Apart is the additional fraction of a fill's cost for scattered lines. Caches beyond the first prefetch
	// consecutive ones. Fitted to pooling on Cascade Lake.
	Apart = 0.6
	// SavedLine is the saving of a non-temporal store, which does not read the line first. The sum of a tensor of 64
	// MiB and a row, with a maximum: 9.4 ms, and 5.7 ms with non-temporal stores (Zen 4, AVX2, one core).
	SavedLine = 8
	// MissedLine is the cost of reading such a line again from memory instead of the last-level cache.
	MissedLine = 4
	// BytesCycle is the number of bytes that a core reads from the last-level cache per cycle. Estimated.
	BytesCycle = 12
)

// ColdLine returns the cost of reading a line of a constant from memory.
func ColdLine(t *target.Target) float64 { return Distance(t) * coldLine }

// PrefetchedLine returns the remaining cost when a prefetch hides a part behind arithmetic.
func PrefetchedLine(t *target.Target) float64 { return Distance(t) * prefetchedLine }

// FetchedAhead returns the best prefetch distance for constants, in bytes. It grows with the distance of memory: on
// Emerald Rapids, doubling it makes five models 1.00 to 1.02 times as fast.
func FetchedAhead(t *target.Target) float64 { return Distance(t) * 1024 }

// Distance returns how much farther the last-level cache and memory are from a core than usual, as a factor.
func Distance(t *target.Target) float64 {
	if isMesh(t) {
		return farther
	}
	return 1
}

// Level is a cache or TLB that is filled by line or by page from a slower level.
type Level struct {
	// Capacity is the number of lines or pages available to the data of a loop. The rest is reserved for other data.
	Capacity float64
	// Pages is set for the TLB.
	Pages bool
	// Cycles is the cost of a fill. It is less than its latency, since fills overlap with one another and with
	// arithmetic.
	Cycles float64
	// Shared is set for the last-level cache: its producer has already left data that fits.
	Shared bool
}

// Growth returns the factor by which the fills of a tensor grow from one loop to the enclosing loop, which runs the
// given number of times. Data shared by iterations stays in a cache that holds everything one iteration touches, and
// is refilled each time in a smaller one. inner and outer are the lines or pages of the tensor that each loop
// touches. touched counts those of all tensors within the inner loop.
func (l Level) Growth(touched, inner, outer, times float64) float64 {
	if touched <= l.Capacity {
		return max(1, outer/inner)
	}
	return times
}

// LinesPerSet returns how many lines at a distance of apart bytes, or a multiple of it, the first-level cache holds at
// the same time, with one way reserved for other data. On x86 the set index comes from the page offset, so a way has
// the size of a page. Other caches are assumed to have four ways.
func LinesPerSet(t *target.Target, apart int64) float64 {
	line, way := Line(t), int64(4096)
	if t.CPU.Arch != target.X86 {
		way = t.CPU.L1DataBytes / 4
	}
	if way < line || t.CPU.L1DataBytes < way {
		return math.Inf(1)
	}
	sets := int64(1)
	for sets*apart%way != 0 && sets < way/line {
		sets *= 2
	}
	return float64(sets * (t.CPU.L1DataBytes/way - 1))
}

// The fractions of caches that the data of a loop may fill. The rest is reserved for other data. Fitted.
const (
	firstPart  = 0.8
	secondPart = 0.7
	lastPart   = 0.5
	// bufferPages is the number of entries of the first-level TLB: 64 on Cascade Lake, 72 on Zen 4.
	bufferPages = 64
)

// Levels returns the first two caches, the TLB, and the third-level cache if there is one. Cycles are fitted to a
// latency of 14 cycles for the second-level cache and about 50 for the third.
func Levels(t *target.Target) []Level {
	line := float64(Line(t))
	list := append(make([]Level, 0, 4),
		Level{Capacity: firstPart * float64(t.CPU.L1DataBytes) / line, Cycles: 1},
		Level{Capacity: secondPart * float64(t.CPU.L2Bytes) / line, Cycles: 3},
		Level{Capacity: bufferPages, Pages: true, Cycles: 6},
	)
	if t.CPU.L3Bytes > 0 {
		list = append(list, Level{Capacity: lastPart * float64(t.CPU.L3Bytes) / line, Cycles: 8, Shared: true})
	}
	return list
}

// meshWaits is the fraction of the smaller of arithmetic and waiting that the larger does not hide in sums over
// windows on Intel's mesh, whose cores have 512 operations in flight. Fitted to points of 47 grouped convolutions on
// Emerald Rapids.
const meshWaits = 0.5

// WindowWaits returns the fraction of the smaller of arithmetic and memory waits that the larger does not hide in
// sums over windows of few channels.
func WindowWaits(t *target.Target) float64 {
	if isMesh(t) {
		return meshWaits
	}
	return 1
}

// CopyCycles returns the cycles of writing and reading a copy of the given size once, caused by the caches that do
// not hold both the copy and its source.
func CopyCycles(t *target.Target, bytes float64) float64 {
	lines, cycles := bytes/float64(Line(t)), 0.0
	for _, l := range Levels(t) {
		if !l.Pages && 2*lines > l.Capacity {
			cycles += 2 * lines * l.Cycles
		}
	}
	return cycles
}

// Line returns the size of a cache line in bytes.
func Line(t *target.Target) int64 { return int64(max(1, t.CPU.CacheLineBytes)) }

// LastCache returns the size of the last-level cache in bytes.
func LastCache(t *target.Target) float64 { return float64(max(t.CPU.L3Bytes, t.CPU.L2Bytes)) }

// Wide returns a vector's width relative to half a line. The costs of moving vectors were determined for half-line
// vectors: a line of one vector has half the arithmetic to hide behind, and its vector takes as long as the two of a
// line before.
func Wide(t *target.Target) float64 {
	return max(1, 2*float64(t.CPU.VectorBytes)/float64(Line(t)))
}
