package microarch

import (
	"math"
	"math/bits"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/target"
)

// The throughput and latency of a core. Server and laptop cores since Haswell and Zen 2 are within a fifth of these
// values, according to the vendors' instruction tables. They are fitted as a whole to times of convolutions and
// products with AVX2 on Zen 4 and with AVX-512 on Cascade Lake.
const (
	// Arithmetic is the number of vector operations per cycle.
	Arithmetic = 2
	// Issue is the number of instructions of any kind issued per cycle.
	Issue = 5
	// Latency is the latency in cycles of an addition or a multiply-add.
	Latency = 4
	// ResultLatency is the latency in cycles of a sum that a loop accumulates, which loses half a cycle. Fitted.
	ResultLatency = Latency + 0.5
	// PairsLate is the additional latency in cycles of products of bfloat16 pairs. Measured on Zen 5.
	PairsLate = 2
	// LoadSlot is the cycles per load in a loop bound by loads: a little more than half a cycle, since loads rarely
	// pair perfectly.
	LoadSlot = 0.56
	// Hidden is the fraction of the smaller of arithmetic and loads that the larger does not hide. Fitted.
	Hidden = 0.15
	// InFlight is the number of operations in flight: approximately the size of a reorder buffer, 224 on Cascade Lake
	// and 320 on Zen 4.
	InFlight = 256
	// LoopExit is the cycles for leaving a loop of more than a few iterations: a branch misprediction. Estimated from
	// branch penalties of 15 to 20 cycles that partly overlap with work.
	LoopExit = 10
	// Across is the cycles of reducing the lanes of a vector to one. Estimated.
	Across = 15
)

// Overlap returns the cycles of arithmetic and of loads, which overlap, and which take at least the given others.
func Overlap(arithmetic, loads float64, others ...float64) float64 {
	longest := max(arithmetic, loads)
	for _, n := range others {
		longest = max(longest, n)
	}
	return longest + Hidden*min(arithmetic, loads)
}

// Parts returns how many vectors hold the given number of elements. A partial vector is divided into parts of 8, 4, 2
// and 1 lanes.
func Parts(elements, lanes int64) int64 {
	return elements/lanes + int64(bits.OnesCount64(uint64(elements%lanes)))
}

// RegisterPressure returns the additional cost of a reduction step that needs more registers than there are, for
// accumulators, a row of vectors and a broadcast operand: how many it spills and reloads, and its minimum cycles,
// since a sum goes through memory between steps. An instruction could read the operand from memory, but LLVM loads
// operands that several instructions share. If a loop has two steps, LLVM keeps no accumulator in a register: with
// AVX-512, a tile of 7 x 4 vectors with 32 registers takes twice as long as with one or four steps. Measured on Zen 5
// on tiles whose operands fit the first-level cache: with 32-byte vectors, 7 x 2, 8 x 2 and 5 x 3 take 13.4 to 14.8
// cycles per step, where the products take 7, 8 and 7.5; with 64-byte vectors, 7 x 4 takes 15.9 instead of 14, and
// 8 x 4 takes 17.9 instead of 16.
func RegisterPressure(t *target.Target, need, accumulators, unroll float64) (loads, cycles float64) {
	over := need - float64(t.CPU.VectorRegisters)
	switch {
	case over <= 0:
		return 0, 0
	case unroll == 2:
		loads = 2 * accumulators
	default:
		loads = 2 * over
	}
	return loads, throughMemory(t)
}

// Loading returns the cycles of loads of vectors and of broadcast numbers. With 64-byte vectors, Intel's cores since
// Golden Cove load two vectors or three numbers per cycle: for 14x14 positions of 512 channels in 32 groups, tiles of
// 14 positions that share a vector reach 0.97 of the peak on Emerald Rapids.
func Loading(t *target.Target, vectors, numbers float64) float64 {
	if isMesh(t) {
		return LoadSlot * max(vectors, (vectors+numbers)*2/3)
	}
	return LoadSlot * (vectors + numbers)
}

// throughMemory returns the cycles of a round trip of a vector through memory: store, load and addition.
func throughMemory(t *target.Target) float64 { return 12 + float64(t.CPU.VectorBytes)/16 }

// Spilled returns the additional loads of a window's step when accumulators leave few registers. The rest of the
// registers holds values for the next step, and an eighth of all registers holds their sources. Fitted to depthwise
// convolutions on Zen 4 with AVX2 and AVX-512.
func Spilled(t *target.Target, accumulators float64) float64 {
	return 1.2 * max(0, 2*accumulators-7./8*float64(t.CPU.VectorRegisters))
}

// AddressRegisters returns how many general registers are available for the addresses of a tile's positions, besides
// those of constants and loops. x86 and Arm's microcontrollers have 16 registers, others 31. Taken from compiler
// output.
func AddressRegisters(t *target.Target) float64 {
	switch t.CPU.Arch {
	case target.X86, target.ARMV7EM, target.ARMV8M:
		return 6
	}
	return 20
}

// Broadcasts reports whether vector instructions can broadcast an operand from memory.
func Broadcasts(t *target.Target) bool { return t.CPU.Has("avx512f") }

// Picking returns the cycles that the multiply units lose to lane permutations of the given number of vectors. With
// AVX-512 on Intel's processors, one of the two units also permutes; with shorter vectors a separate unit does.
// Estimated from vendors' tables.
func Picking(t *target.Target, vectors float64) float64 {
	if t.CPU.VectorBytes >= 64 {
		return vectors / 2
	}
	return 0.15 * vectors
}

// Inserting returns the cycles that the multiply units lose to joining the halves of the given number of vectors.
// Estimated from vendors' tables.
func Inserting(vectors float64) float64 { return vectors / Arithmetic }

// Turns returns the cycles that the multiply units lose to interleaving the elements of several vectors in one
// register: all but one vector are inserted, and the result is permuted. Estimated from vendors' tables.
func Turns(t *target.Target, vectors int64) float64 {
	cycles := Picking(t, float64(vectors))
	if t.CPU.VectorBytes >= 64 && !t.CPU.Has("avx512vbmi") {
		cycles *= 2
	}
	return cycles
}

// Casting returns the cycles that the multiply units lose to widening the given number of 16-bit vectors to 32 bits
// by a permutation and a shift. Estimated from vendors' tables.
func Casting(t *target.Target, vectors float64) float64 { return Picking(t, vectors) + vectors/2 }

// MultipliesPairs reports whether the target multiplies bfloat16 pairs at the rate of float32 multiply-adds. Intel's
// cores with AVX512-FP16, Sapphire Rapids and later, reach a quarter of that rate. Measured on Emerald Rapids.
func MultipliesPairs(t *target.Target) bool {
	if t.CPU.Arch == target.ARM {
		return t.CPU.Has("bf16")
	}
	return t.CPU.Has("avx512bf16") && !isMesh(t)
}

// isMesh reports whether the target is an Intel server since Sapphire Rapids, with many cores on a mesh.
func isMesh(t *target.Target) bool {
	return strings.HasPrefix(t.CPU.Model, "Intel") && t.CPU.Has("avx512fp16")
}

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

// Share returns the busiest worker's fraction of work that is divided into chunks.
func Share(t *target.Target, chunks float64) float64 {
	return math.Ceil(chunks/float64(Workers(t))) / chunks
}

// Elapsed returns the time of the busiest worker, with that of starting a region. A single chunk starts none.
func Elapsed(t *target.Target, work, chunks float64) float64 {
	work *= Share(t, chunks)
	if chunks > 1 {
		work += Region(t)
	}
	return work
}

// Clock is the number of cycles per second. Costs are relative, so it matters only where measured times meet
// estimated ones. It approximates a server with all cores busy, 2.6 to 3.7 GHz on the processors named here.
const Clock = 3.5e9

// HasDots reports whether an arm64 target has the dot product of four bytes of equal signedness per lane. SVE
// includes it.
func HasDots(t *target.Target) bool {
	return t.CPU.Arch == target.ARM && (t.CPU.Has("dotprod") || t.CPU.Has("sve") && t.CPU.VectorBytes > NeonBytes)
}

// NeonBytes is the size of a Neon register.
const NeonBytes = 16

// HasSquares reports whether a target multiplies two rows by two columns of elements of these types in one
// instruction: 8 bytes of each, integers of any signedness.
func HasSquares(t *target.Target, rows, columns array.DType) bool {
	bytes := func(d array.DType) bool { return d == array.Int8 || d == array.Uint8 }
	switch {
	case t.CPU.Arch != target.ARM:
		return false
	case bytes(rows) && bytes(columns):
		return t.CPU.Has("i8mm")
	}
	return rows == array.BFloat16 && columns == array.BFloat16 && t.CPU.Has("bf16")
}

// tiles maps an element type to the feature of its tile multiplication instructions.
var tiles = map[array.DType]string{
	array.BFloat16: "amx-bf16", array.Float16: "amx-fp16", array.Int8: "amx-int8", array.Uint8: "amx-int8",
}

// HasTiles reports whether a target multiplies tiles of elements of a type.
func HasTiles(t *target.Target, d array.DType) bool {
	name, known := tiles[d]
	return known && t.CPU.Has("amx-tile") && t.CPU.Has(name)
}

// Throughput and latency of tile instructions, from Intel's instruction tables for Sapphire Rapids. None was measured.
const (
	// TileProduct is the cycles of a tile product: 16 x 16 sums of 32 bits, of 32 terms of 16 bits or 64 terms of 8
	// bits.
	TileProduct = 16
	// TileLoad is the cycles of loading a tile whose rows are in the first-level cache.
	TileLoad = 8
	// TileStore is the cycles of storing a tile.
	TileStore = 16
	// TileLatency is the latency in cycles of a tile's sums.
	TileLatency = 52
)
