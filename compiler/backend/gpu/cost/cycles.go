package cost

import (
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Cycles estimates how many cycles a launch takes, and why.
type Cycles struct {
	// Arithmetic, Matrix, Shared and Global are the cycles of a block's work on a multiprocessor's lanes, its tensor
	// cores, its shared memory, and its share of global memory, each in isolation.
	Arithmetic, Matrix, Shared, Global float64
	// Wait is the time that a block waits for operands in all its steps without computing.
	Wait float64
	// Residents is the number of concurrent blocks per multiprocessor, Waves the number of tiles that each of them or
	// its successors compute. The last wave may be partial.
	Residents, Waves float64
	// Tail is the additional time of the launch compared with all multiprocessors ending at once.
	Tail float64
	// Total is the time of the launch from start to end.
	Total float64
}

// Busiest returns the maximum of the cycles of a block's work.
func (c *Cycles) Busiest() float64 { return max(c.Arithmetic, c.Matrix, c.Shared, c.Global) }

// Cycles estimates the time of a launch. Resident blocks share a multiprocessor, and one computes while another waits.
func (a *Analysis) Cycles(l *Launch) Cycles {
	held := Residents(a.GPU, l.Threads, l.Registers, l.SharedBytes)
	together, rounds := Occupy(a.GPU, l.Blocks, held)
	processors := float64(a.GPU.Multiprocessors)
	c := Cycles{
		Arithmetic: (l.Operations.Slots() + l.Instructions()) / Lanes,
		Matrix:     l.Matrix * l.MatrixBits / MatrixBits,
		Shared:     l.Local.Units,
		Global:     TrafficCycles((l.Global.Units+l.Stored.Units)*sectorBytes, a.Bytes/float64(l.Blocks)),
		Residents:  together,
		Waves:      float64(l.Blocks) / (float64(held) * processors),
		Tail:       1,
	}
	if l.Tiles != l.Blocks { // persistent blocks start once each
		share := float64(l.Tiles) / float64(l.Blocks)
		c.Waves, c.Tail = max(1, c.Waves)*share, l.Max/share
	} else {
		c.Tail = rounds / c.Waves
	}
	work := Exposed(c.Busiest()*l.uneven(), c.Residents*l.Warps())
	steps := max(1, l.Steps)
	c.Wait = steps * max(0, Latency-float64(l.Stages-1)*work/steps)
	c.Total = rounds*(max(work*c.Residents, work+c.Wait)+Latency*l.Begun) + LaunchCycles
	return c
}

// uneven returns the maximum work of a block relative to the average.
func (l *Launch) uneven() float64 {
	if l.Tiles == l.Blocks {
		return 1
	}
	return l.Max * float64(l.Blocks) / float64(l.Tiles)
}

// Total returns the approximate number of cycles of all launches.
func (a *Analysis) Total() (cycles float64) {
	for _, l := range a.Launches {
		cycles += a.Cycles(l).Total
	}
	return cycles
}

// Warps returns how many warps a block has.
func (l *Launch) Warps() float64 { return float64((l.Threads + width - 1) / width) }

// Instructions returns how many instructions threads issue for loads, stores and copies.
func (l *Launch) Instructions() float64 {
	return (l.Global.Requests+l.Stored.Requests+l.Local.Requests)*width + copyInstructions*l.Copies
}

// copyInstructions is the number of instructions of a copy beside its access to either memory.
const copyInstructions = 2

// The throughput of a multiprocessor per cycle. This and latencies follow the published specifications of NVIDIA's
// Hopper; they are not measured.
const (
	// Lanes is the number of thread operations: multiply-adds in float32, or others.
	Lanes = 128.0
	// MatrixBits is the bits of either factor that tensor cores multiply and accumulate with warp instructions: 1024
	// products of bfloat16.
	MatrixBits = 1024.0 * 16
	// SharedWords is the number of 32-bit words that shared memory transfers in one turn of its banks.
	SharedWords = 32.0
	// GroupBits is the equivalent of MatrixBits for warpgroup instructions.
	GroupBits = 2048.0 * 16
	// GroupBytes is the number of bytes that these instructions read from shared memory.
	GroupBytes = 128.0
	// GlobalBytes is the bandwidth of global memory when all multiprocessors read.
	GlobalBytes = 16.0
	// CacheBytes is the bandwidth of the L2 cache.
	CacheBytes = 40.0
	// OneReads is that bandwidth for a block that only loads, since much of the latency is exposed.
	OneReads = 24.0
)

// Latencies in cycles.
const (
	// Latency is the latency of a load from global memory.
	Latency = 600.0
	// LaunchCycles is the time from the end of a launch to the start of the next one.
	LaunchCycles = 2500.0
)

// TrafficCycles returns the cycles in which a multiprocessor receives the given bytes. fresh is the part that is not
// in the L2 cache yet.
func TrafficCycles(bytes, fresh float64) float64 {
	return max(bytes/CacheBytes, min(bytes, fresh)/GlobalBytes)
}

// busyWarps is the number of warps that saturate a multiprocessor if they only wait for their own instructions.
const busyWarps = 8

// Exposed returns the cycles of work by a number of warps of a multiprocessor. Few of them do not saturate it, since
// an instruction depends on the previous one.
func Exposed(work, warps float64) float64 { return work * max(1, busyWarps/warps) }

// Occupy returns how many of a launch's blocks a multiprocessor computes at a time if it has room for the given
// number, and how many rounds of blocks follow one another.
func Occupy(g *target.GPU, blocks, resident int64) (together, rounds float64) {
	processors := int64(g.Multiprocessors)
	return float64(min(resident, sketch.CeilDiv(blocks, processors))), float64(sketch.CeilDiv(blocks, resident*processors))
}

// Residents returns how many blocks a multiprocessor holds at a time, given a block's resources: at least one.
func Residents(g *target.GPU, threads, registers, sharedBytes int64) int64 {
	return max(1, min(ByThreads(g, threads), ByRegisters(g, threads*registers), ByShared(g, sharedBytes)))
}

// ByThreads returns how many blocks of that many threads fit on a multiprocessor.
func ByThreads(g *target.GPU, threads int64) int64 {
	warp := int64(g.WarpThreads)
	return int64(g.MultiprocessorThreads) / max(1, (threads+warp-1)/warp*warp)
}

// ByRegisters returns how many blocks with that many registers fit.
func ByRegisters(g *target.GPU, registers int64) int64 {
	return int64(g.MultiprocessorRegisters) / max(1, registers)
}

// ByShared returns how many blocks with that much shared memory fit.
func ByShared(g *target.GPU, bytes int64) int64 { return g.MultiprocessorSharedBytes / max(1, bytes) }
