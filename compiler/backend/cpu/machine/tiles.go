package machine

// What a core does with tiles, as Intel's tables of instructions for Sapphire Rapids say. None of these was measured
// on a machine.
const (
	// TileProduct is the cycles of a product of tiles: 16 x 16 sums of 32 bits, of 32 terms of 16 bits or 64 of 8.
	TileProduct = 16
	// TileLoad is the cycles of a load of a tile whose rows are in the first cache.
	TileLoad = 8
	// TileStore is the cycles of a store of a tile.
	TileStore = 16
	// TileLatency is the cycles until sums can be added to again.
	TileLatency = 52
)
