package machine

import "github.com/tilth-dev/tilth/compiler/target"

// What a multiprocessor does in a cycle.
const (
	// Lanes is the operations of threads: multiplications and additions in float32, or others.
	Lanes = 128.0
	// MatrixBits is the bits of either factor that tensor cores multiply and add by the instructions that a warp has:
	// 1024 products of bfloat16.
	MatrixBits = 1024.0 * 16
	// SharedWords is the words of 32 bits that shared memory gives or takes, in one turn of its banks.
	SharedWords = 32.0
	// GroupBits is MatrixBits of the instructions that a warpgroup has.
	GroupBits = 2048.0 * 16
	// GroupBytes is what these instructions read of shared memory.
	GroupBytes = 128.0
	// GlobalBytes is what comes from global memory when all multiprocessors read.
	GlobalBytes = 16.0
	// CacheBytes is what comes from the cache that all multiprocessors share.
	CacheBytes = 40.0
	// OneReads is what comes from there for a block that does nothing but load: it has to wait for much of it.
	OneReads = 24.0
)

// What waiting costs, in cycles.
const (
	// Latency is how long a load from global memory takes.
	Latency = 600.0
	// Launch is from the end of a launch to the beginning of the next one.
	Launch = 2500.0
)

// Traffic is the cycles in which a multiprocessor gets so many bytes, of which so many are not in the shared cache
// yet.
func Traffic(bytes, fresh float64) float64 {
	return max(bytes/CacheBytes, min(bytes, fresh)/GlobalBytes)
}

// BusyWarps is how many warps keep a multiprocessor busy that have nothing to wait for but their own instructions.
const BusyWarps = 8

// Residents is how many blocks a multiprocessor holds at a time, by what a block takes of it: at least one.
func Residents(g *target.GPU, threads, registers, sharedBytes int64) int64 {
	return max(1, min(ByThreads(g, threads), ByRegisters(g, threads*registers), ByShared(g, sharedBytes)))
}

// ByThreads is how many blocks of so many threads a multiprocessor has room for.
func ByThreads(g *target.GPU, threads int64) int64 {
	warp := int64(g.WarpThreads)
	return int64(g.MultiprocessorThreads) / max(1, (threads+warp-1)/warp*warp)
}

// ByRegisters is how many blocks it has room for that take so many registers.
func ByRegisters(g *target.GPU, registers int64) int64 {
	return int64(g.MultiprocessorRegisters) / max(1, registers)
}

// ByShared is how many blocks it has room for that take so much shared memory.
func ByShared(g *target.GPU, bytes int64) int64 { return g.MultiprocessorSharedBytes / max(1, bytes) }
