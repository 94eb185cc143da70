package cost

import "github.com/tilth-dev/tilth/compiler/target"

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

// BusyWarps is the number of warps that saturate a multiprocessor if they only wait for their own instructions.
const BusyWarps = 8

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
