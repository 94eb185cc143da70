package x86

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// tiles declares the tile operations (AMX). A definition of TILTH_TILES before it replaces them: tests supply a model
// of the instructions for machines without them. Tile numbers are constants. The symbol makes a package request the
// use of tiles from the kernel.
var tiles = &ir.Prelude{Name: "tilth_tiles", Text: `#ifndef TILTH_TILES
#define TILTH_TILES
#define tilth_tile_zero(tile) __builtin_ia32_tilezero(tile)
#define tilth_tile_load(tile, from, bytes) __builtin_ia32_tileloadd64(tile, from, bytes)
#define tilth_tile_store(tile, to, bytes) __builtin_ia32_tilestored64(tile, to, bytes)
#define tilth_tile_product(name, sum, a, b) __builtin_ia32_##name(sum, a, b)
#endif
__attribute__((weak, visibility("hidden"))) const char tilth_uses_tiles = 1;
`}

// TileZero zeroes a tile. TileLoad fills a tile with rows of 64 bytes at the operand's stride, and TileStore stores
// them.
var (
	TileZero = &ir.Instruction{
		Name: "tile.zero", Params: []ir.Param{{Name: "tile", Use: ir.Write, In: ir.Tile, Form: ir.Named}},
		Text: "tilth_tile_zero(%s);", Prelude: tiles,
	}
	TileLoad = &ir.Instruction{
		Name: "tile.load", Params: []ir.Param{
			{Name: "tile", Use: ir.Write, In: ir.Tile, Form: ir.Named}, {Name: "from", Use: ir.Read, Form: ir.StridedBytes},
		},
		Text: "tilth_tile_load(%s, %s);", Prelude: tiles,
	}
	TileStore = &ir.Instruction{
		Name: "tile.store", Params: []ir.Param{
			{Name: "tile", Use: ir.Read, In: ir.Tile, Form: ir.Named}, {Name: "to", Use: ir.Write, Form: ir.StridedBytes},
		},
		Text: "tilth_tile_store(%s, %s);", Prelude: tiles,
	}
)

// TileProduct returns the instruction that adds the product of two tiles to the sums of another, given the types of
// the factors: to element m, n the products of row m of the first with column n of the second, which holds the terms
// of a column in groups of Format.Packed, one group per row.
func TileProduct(f schedule.Format, a, b array.DType) *ir.Instruction {
	var name string
	switch f {
	case schedule.TileBF16:
		name = "tdpbf16ps"
	case schedule.TileF16:
		name = "tdpfp16ps"
	default:
		sign := map[array.DType]string{array.Int8: "s", array.Uint8: "u"}
		name = fmt.Sprintf("tdpb%s%sd", sign[a], sign[b])
	}
	return &ir.Instruction{
		Name: name, Params: []ir.Param{
			{Name: "sums", Use: ir.Update, In: ir.Tile, Form: ir.Named}, {Name: "a", Use: ir.Read, In: ir.Tile, Form: ir.Named},
			{Name: "b", Use: ir.Read, In: ir.Tile, Form: ir.Named},
		},
		Text: "tilth_tile_product(" + name + ", %s, %s, %s);", Prelude: tiles,
	}
}
