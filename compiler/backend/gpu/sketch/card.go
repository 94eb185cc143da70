package sketch

// Properties of the cards that schedules are written for.
const (
	// warpThreads is the number of threads of a warp, which exchange registers.
	warpThreads = 32
	// banks is the number of shared memory banks, and wordBytes the bytes that each of them serves per turn.
	banks, wordBytes = 32, 4
	// copyBytes is the maximum size of a thread's copy.
	copyBytes = 16
	// rowBytes is the alignment of a tensor's rows for TMA copies.
	rowBytes = 16
	// tensorMaxRegisters limits a thread's results and operands of matrix instructions, so that addresses have room.
	tensorMaxRegisters = 200
)

// Costs in cycles, or in a thread's instructions.
const (
	// shuffleWait is the time of a warp shuffle.
	shuffleWait = 25.0
	// stepWait is the cycles of a step in which a block's warps do not multiply: they wait for one another, and for
	// their first fragments.
	stepWait = 60.0
	// copyOperations is a thread's instructions per copy to shared memory.
	copyOperations = 6.0
	// loadOperations is a thread's instructions per element of a fragment that it loads and rounds or packs.
	loadOperations = 2.0
)
