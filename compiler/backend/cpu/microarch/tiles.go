package microarch

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
