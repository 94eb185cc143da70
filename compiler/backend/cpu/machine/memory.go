package machine

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/target"
)

// What memory costs, in cycles of one core. Fills overlap with one another and with arithmetic, so they cost less than
// their latency.
const (
	// coldLine is what a line of a constant takes from memory, where it was left since the last execution. 64 bytes in
	// 8 cycles are 25 GB/s at 3.2 GHz: what one core of Zen 4 and of Cascade Lake reads.
	coldLine = 8
	// prefetchedLine is what is left of it where a prefetch hides a part behind arithmetic.
	prefetchedLine = 5
	// farther is by how much both are more for a core that is far from its memory. One core of Emerald Rapids reads 16
	// GB/s at 2.9 GHz, 11.5 cycles a line. Default schedules of six models on one thread are best with twice the
	// cycles (resnet-18 1.08 times as fast, resnet-50 1.04, VGG, Inception and DenseNet 1.01), a little less with 1.5.
	farther = 2
	// StreamedWork is the cycles of arithmetic on a line of a constant below which a kernel does nothing but read it:
	// then the processor's own prefetching keeps up, and requests besides only compete with it. Products of one and
	// two rows, 650 x 2600: 166 and 198 us without prefetching, 214 and 236 us with it; of four rows it pays (Zen 4,
	// AVX2, weights from memory).
	StreamedWork = 3
	// Ahead is the part of a fill's cost that is left for a panel, which the processor sees coming. Fitted.
	Ahead = 0.35
	// Apart is by how much of a fill's cost lines that lie apart cost more than those that follow one another, which
	// caches beyond the first fetch ahead. Fitted to pooling on Cascade Lake.
	Apart = 0.6
	// SavedLine is what storing a line past the caches saves, which is to read it first. The sum of a tensor of 64 MiB
	// and a row, with a maximum: 9.4 ms, and 5.7 past the caches (Zen 4, AVX2, one core).
	SavedLine = 8
	// MissedLine is what it costs when it is read again: it is in memory then and not in the last cache.
	MissedLine = 4
	// BytesCycle is how many bytes a core reads in a cycle from the last cache. Estimated.
	BytesCycle = 12
)

// ColdLine is what a line of a constant takes from memory.
func ColdLine(t *target.Target) float64 { return Distance(t) * coldLine }

// PrefetchedLine is what is left of it where a prefetch hides a part behind arithmetic.
func PrefetchedLine(t *target.Target) float64 { return Distance(t) * prefetchedLine }

// FetchedAhead is how many bytes ahead of their use lines of constants are best fetched. The farther memory is, the
// earlier: by twice as much, five models are 1.00 to 1.02 times as fast on Emerald Rapids.
func FetchedAhead(t *target.Target) float64 { return Distance(t) * 1024 }

// Distance is by how much the last cache and memory are farther from a core than from most.
func Distance(t *target.Target) float64 {
	if isMesh(t) {
		return farther
	}
	return 1
}

// Level is a store that is filled line by line, or page by page, from a slower one.
type Level struct {
	// Capacity is how many lines or pages it holds of what a loop reads, leaving room for all else.
	Capacity float64
	// Pages is set for the translation buffer.
	Pages bool
	// Cycles is what a fill costs: less than its latency, since fills overlap with one another and with arithmetic.
	Cycles float64
	// Shared is set for the last cache: what fits it is there already, left by whatever made it.
	Shared bool
}

// Growth is by what factor the fills of a tensor grow from one loop to the next one around it, which runs so many
// times: what its iterations share stays in a store that holds all that one of them touches, and is filled anew each
// time in one that does not. Inner and outer are the lines, or pages, of the tensor that each of both loops touches,
// and touched those of all tensors within the inner one.
func (l Level) Growth(touched, inner, outer, times float64) float64 {
	if touched <= l.Capacity {
		return outer / inner
	}
	return times
}

// Together is how many lines that lie so many bytes apart, or a multiple of it, the first cache has at the same time,
// with a way left for all else. On x86 it finds a line's set by the bits of an address within a page, so that its ways
// are as large as a page; elsewhere it is taken to have four.
func Together(t *target.Target, apart int64) float64 {
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

// The parts of caches that what a loop reads may fill, leaving room for all else. Fitted.
const (
	firstPart  = 0.8
	secondPart = 0.7
	lastPart   = 0.5
	// bufferPages are the entries of the first translation buffer: 64 on Cascade Lake, 72 on Zen 4.
	bufferPages = 64
)

// Levels are the caches and the translation buffer: the first two caches, the buffer, and the third cache where there
// is one. Cycles are fitted, to 14 cycles of latency of the second cache and about 50 of the third.
func Levels(t *target.Target) []Level {
	line := float64(Line(t))
	list := []Level{
		{Capacity: firstPart * float64(t.CPU.L1DataBytes) / line, Cycles: 1},
		{Capacity: secondPart * float64(t.CPU.L2Bytes) / line, Cycles: 3},
		{Capacity: bufferPages, Pages: true, Cycles: 6},
	}
	if t.CPU.L3Bytes > 0 {
		list = append(list, Level{Capacity: lastPart * float64(t.CPU.L3Bytes) / line, Cycles: 8, Shared: true})
	}
	return list
}

// meshWaits is the part of the smaller of arithmetic and waiting that the larger does not hide in sums over windows
// on Intel's mesh, whose cores look 512 operations ahead. Fitted to points of 47 convolutions in groups on Emerald
// Rapids.
const meshWaits = 0.5

// WindowWaits is the part of the smaller of arithmetic and waiting for memory that the larger does not hide in sums
// over windows of few channels.
func WindowWaits(t *target.Target) float64 {
	if isMesh(t) {
		return meshWaits
	}
	return 1
}

// Kept is the cycles that a copy of so many bytes costs to be written and read once, for the caches that it and what
// it is made of do not fit into.
func Kept(t *target.Target, bytes float64) float64 {
	lines, cycles := bytes/float64(Line(t)), 0.0
	for _, l := range Levels(t) {
		if !l.Pages && 2*lines > l.Capacity {
			cycles += 2 * lines * l.Cycles
		}
	}
	return cycles
}

// Line is the bytes of a cache line.
func Line(t *target.Target) int64 { return int64(max(1, t.CPU.CacheLineBytes)) }

// LastCache is the bytes of the cache that is farthest from a core.
func LastCache(t *target.Target) float64 { return float64(max(t.CPU.L3Bytes, t.CPU.L2Bytes)) }

// Wide is by how much a vector is wider than half a line, those for which the costs of moving vectors were found: a
// line of one vector has half the arithmetic to hide behind, and a vector takes as long as the two of a line that had
// it before.
func Wide(t *target.Target) float64 {
	return max(1, 2*float64(t.CPU.VectorBytes)/float64(Line(t)))
}
