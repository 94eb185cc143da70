package microarch

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/target"
)

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
