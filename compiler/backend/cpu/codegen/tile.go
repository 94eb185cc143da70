package codegen

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// tilePrelude declares the tile operations. A definition of TILTH_TILES before it replaces them: tests supply a model
// of the instructions for machines without them. Tile numbers are constants. The symbol makes a package request the
// use of tiles from the kernel.
const tilePrelude = `#ifndef TILTH_TILES
#define TILTH_TILES
#define tilth_tile_zero(tile) __builtin_ia32_tilezero(tile)
#define tilth_tile_load(tile, from, bytes) __builtin_ia32_tileloadd64(tile, from, bytes)
#define tilth_tile_store(tile, to, bytes) __builtin_ia32_tilestored64(tile, to, bytes)
#define tilth_tile_product(name, sum, a, b) __builtin_ia32_##name(sum, a, b)
#endif
__attribute__((weak, visibility("hidden"))) const char tilth_uses_tiles = 1;
`

// tile prints an operation on tiles.
func (p *printer) tile(st ir.Stmt) {
	p.unit.declarations.Declare("tilth_tiles", tilePrelude)
	switch n := st.(type) {
	case *ir.TileZero:
		p.line("tilth_tile_zero(%d);", n.Tile.Index)
	case *ir.TileLoad:
		from := p.element(n.From, expr.Linearize(n.Index))
		p.line("tilth_tile_load(%d, &%s, %d);", n.Tile.Index, from, n.RowElements*n.From.DType.Bytes())
	case *ir.TileProduct:
		p.line("tilth_tile_product(%s, %d, %d, %d);", tileProduct(n), n.Sum.Index, n.A.Index, n.B.Index)
	case *ir.TileStore:
		to := p.element(n.To.Tensor, expr.Linearize(n.Index))
		p.line("tilth_tile_store(%d, &%s, %d);", n.Tile.Index, to, n.RowElements*n.To.Tensor.DType.Bytes())
	}
}

// tileProduct returns the instruction of a product.
func tileProduct(n *ir.TileProduct) string {
	switch n.Format {
	case schedule.TileBF16:
		return "tdpbf16ps"
	case schedule.TileF16:
		return "tdpfp16ps"
	}
	sign := map[array.DType]string{array.Int8: "s", array.Uint8: "u"}
	return fmt.Sprintf("tdpb%s%sd", sign[n.A.Tensor.DType], sign[n.B.Tensor.DType])
}
