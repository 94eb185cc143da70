package machine

import (
	"strings"

	"github.com/tilth-dev/tilth/compiler/target"
)

// What a core does at a time. Cores of servers and laptops since Haswell and Zen 2 are within a fifth of it, as their
// vendors' tables of instructions say; fitted as a whole to times of convolutions and products with AVX2 on Zen 4, and
// with AVX-512 on Cascade Lake.
const (
	// Arithmetic is how many operations on vectors it does in a cycle.
	Arithmetic = 2
	// Issue is how many instructions of any kind it begins in a cycle.
	Issue = 5
	// Latency is the cycles until the result of an addition or a multiply-add can be used.
	Latency = 4
	// ResultLatency is the cycles until a sum can be added to in a loop, where half a cycle is lost on the way.
	// Fitted.
	ResultLatency = Latency + 0.5
	// PairsLate is how many cycles later that of products of pairs of bfloat16 can be used. Measured on Zen 5.
	PairsLate = 2
	// LoadSlot is the cycles that a load takes where loads are what bounds a loop: a little more than half of one,
	// since two seldom meet.
	LoadSlot = 0.56
	// Hidden is the part of the smaller of arithmetic and loads that the larger does not hide. Fitted.
	Hidden = 0.15
	// InFlight is how many operations it looks ahead: about the entries of a reorder buffer, 224 on Cascade Lake and
	// 320 on Zen 4.
	InFlight = 256
	// LoopExit is the cycles for leaving a loop that runs more than a few times: a wrong prediction. Estimated from
	// branch penalties of 15 to 20 cycles, of which some pass with work.
	LoopExit = 10
	// Across is the cycles in which the lanes of a vector are combined to one. Estimated.
	Across = 15
)

// Crowded is what a step of a reduction costs more because accumulators, a row of vectors and the operand that a step
// broadcasts are more than there are registers: how many of them it stores and loads again, and the cycles that it
// takes at least, since a sum goes through memory from one step to the next. An instruction could read the operand
// from memory, but LLVM loads what several instructions share; and where a loop has two steps, it keeps no accumulator
// in its register: with AVX-512, a tile of 7 x 4 vectors of 32 takes twice as long as with one or four. Measured on
// Zen 5 on tiles whose operands the first cache holds: of vectors of 32 bytes 7 x 2, 8 x 2 and 5 x 3 take 13.4 to 14.8
// cycles a step, where multiplying takes 7, 8 and 7.5; of 64 bytes 7 x 4 takes 15.9 in place of 14, and 8 x 4 17.9 in
// place of 16.
func Crowded(t *target.Target, accumulators, vectors float64, unroll int64) (loads, cycles float64) {
	over := accumulators + vectors + 1 - float64(t.CPU.VectorRegisters)
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

// Loading is the cycles that loads take: of vectors, and of numbers that go to all lanes. Where vectors are 64 bytes,
// Intel's cores since Golden Cove load two of them in a cycle, but three numbers: of 14x14 positions of 512 channels
// in 32 groups, tiles of 14 positions that share a vector multiply at 0.97 of the peak on Emerald Rapids.
func Loading(t *target.Target, vectors, numbers float64) float64 {
	if isMesh(t) {
		return LoadSlot * max(vectors, (vectors+numbers)*2/3)
	}
	return LoadSlot * (vectors + numbers)
}

// throughMemory is the cycles until a vector that was stored, loaded and added to can be stored again.
func throughMemory(t *target.Target) float64 { return 12 + float64(t.CPU.VectorBytes)/16 }

// Spilled is how many loads a step of a window has because accumulators leave few registers: as many hold what the
// next step reads again, and an eighth of all is for what both are made of. Fitted to depthwise convolutions on Zen 4,
// with AVX2 and AVX-512.
func Spilled(t *target.Target, accumulators float64) float64 {
	return 1.2 * max(0, 2*accumulators-7./8*float64(t.CPU.VectorRegisters))
}

// AddressRegisters is how many general registers are left for the addresses of a tile's positions, beside those of
// constants and loops: of 16 on x86 and Arm's microcontrollers, and 31 on others, as compilers' code has them.
func AddressRegisters(t *target.Target) float64 {
	switch t.CPU.Arch {
	case target.X86, target.ARMV7EM, target.ARMV8M:
		return 6
	}
	return 20
}

// Broadcasts reports whether vector instructions read one operand as a broadcast from memory.
func Broadcasts(t *target.Target) bool { return t.CPU.Has("avx512f") }

// Picking is the cycles that the units which multiply lose to picking lanes for so many vectors: with AVX-512 one of
// two does that, too, on Intel's processors; with shorter vectors another unit does. Estimated from vendors' tables.
func Picking(t *target.Target, vectors float64) float64 {
	if t.CPU.VectorBytes >= 64 {
		return vectors / 2
	}
	return 0.15 * vectors
}

// Inserting is the cycles that the units which multiply lose to joining the halves of so many vectors. Estimated from
// vendors' tables.
func Inserting(vectors float64) float64 { return vectors / Arithmetic }

// Turns is the cycles that the units which multiply lose to a register in which the elements of so many vectors take
// turns: all but one are inserted, and permuted. Estimated from vendors' tables.
func Turns(t *target.Target, vectors int64) float64 {
	cycles := Picking(t, float64(vectors))
	if t.CPU.VectorBytes >= 64 && !t.CPU.Has("avx512vbmi") {
		cycles *= 2
	}
	return cycles
}

// Casting is the cycles that the units which multiply lose to casting so many vectors of 16 bits to 32: lanes are
// picked, and shifted. Estimated from vendors' tables.
func Casting(t *target.Target, vectors float64) float64 { return Picking(t, vectors) + vectors/2 }

// MultipliesPairs reports whether it multiplies pairs of bfloat16, at the rate of multiply-adds in float32. Intel's
// cores with AVX512-FP16, Sapphire Rapids and later, do so at a quarter of it: measured on Emerald Rapids.
func MultipliesPairs(t *target.Target) bool {
	if t.CPU.Arch == target.ARM {
		return t.CPU.Has("bf16")
	}
	return t.CPU.Has("avx512bf16") && !isMesh(t)
}

// isMesh reports whether it is one of Intel's servers since Sapphire Rapids, whose many cores are on a mesh.
func isMesh(t *target.Target) bool {
	return strings.HasPrefix(t.CPU.Model, "Intel") && t.CPU.Has("avx512fp16")
}
