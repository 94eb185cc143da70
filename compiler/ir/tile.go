package ir

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// NewTile returns tile register number n, below schedule.TileRegisters. It holds elements of a type until the end
// of the block of its Alloc.
func NewTile(n int, name string, d array.DType) *Buffer {
	return &Buffer{Tensor: Flat(name, d, schedule.TileRows*schedule.TileRowBytes/d.Bytes()), Space: Tile, Index: n}
}
