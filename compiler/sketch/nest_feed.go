package sketch

// Where a stage that feeds a reduction is computed: at each load, in its own nest, in the block of tiles that reads
// it, or in the tile.
const (
	Inline = iota
	Alone
	InBlock
	InTile
)
