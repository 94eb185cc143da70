package x86

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
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

// TileZero returns the instruction that zeroes a tile of elements of a type.
func TileZero(d array.DType) *ir.Instruction {
	return tileMove("tile.zero", d, ir.Param{Name: "tile", Use: ir.Write, In: ir.Tile, Form: ir.Named})
}

// TileLoad returns the instruction that fills a tile with rows of 64 bytes at the operand's stride.
func TileLoad(d array.DType) *ir.Instruction {
	return tileMove("tile.load", d, ir.Param{Name: "tile", Use: ir.Write, In: ir.Tile, Form: ir.Named}, ir.Param{Name: "from", Use: ir.Read, Form: ir.StridedBytes})
}

// TileStore returns the instruction that stores them.
func TileStore(d array.DType) *ir.Instruction {
	return tileMove("tile.store", d, ir.Param{Name: "tile", Use: ir.Read, In: ir.Tile, Form: ir.Named}, ir.Param{Name: "to", Use: ir.Write, Form: ir.StridedBytes})
}

// tileMove returns an instruction that copies the elements of a tile, or zeroes them.
func tileMove(name string, d array.DType, params ...ir.Param) *ir.Instruction {
	i := &ir.Instruction{Name: name, Params: params, Text: "tilth_" + strings.ReplaceAll(name, ".", "_") + "(" + strings.Repeat(", %s", len(params))[2:] + ");", Prelude: tiles}
	row, column := &expr.Var{Name: "m", Extent: schedule.TileRows}, &expr.Var{Name: "k", Extent: schedule.TileRowBytes / d.Bytes()}
	elements := []*expr.Tensor{tileOf("tile", d), ir.Flat("row", d, column.Extent)}[:len(params)]
	i.Meaning = ir.NewMeaning(i, func(f []ir.Formal) ir.Block {
		move := &ir.Store{Buffer: f[0].Buffer, Index: expr.AddE(expr.MulE(row, expr.I(column.Extent)), column), Value: expr.Zero(d)}
		if len(f) == 2 {
			move.Value = f[1].At(f[1].Index(nil, row, column))
		}
		if params[0].Use == ir.Read {
			move = &ir.Store{Buffer: f[1].Buffer, Index: f[1].Index(nil, row, column), Value: f[0].At(move.Index)}
		}
		return ir.Nest(ir.Serial, ir.Block{move}, row, column)
	}, elements...)
	return i
}

// tileOf returns the elements of a tile.
func tileOf(name string, d array.DType) *expr.Tensor { return ir.NewTile(0, name, d).Tensor }

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
	i := &ir.Instruction{
		Name: name, Params: []ir.Param{
			{Name: "sums", Use: ir.Update, In: ir.Tile, Form: ir.Named}, {Name: "a", Use: ir.Read, In: ir.Tile, Form: ir.Named},
			{Name: "b", Use: ir.Read, In: ir.Tile, Form: ir.Named},
		},
		Text: "tilth_tile_product(" + name + ", %s, %s, %s);", Prelude: tiles,
	}
	i.Meaning = ir.NewMeaning(i, func(x []ir.Formal) ir.Block { return tileSums(f, x) }, tileOf("sums", f.Sum()), tileOf("a", a), tileOf("b", b))
	return i
}

// tileSums adds the products of rows and columns, group by group.
func tileSums(f schedule.Format, x []ir.Formal) ir.Block {
	row, column := &expr.Var{Name: "m", Extent: schedule.TileRows}, &expr.Var{Name: "n", Extent: schedule.TileColumns}
	group, term := &expr.Var{Name: "g", Extent: schedule.TileColumns}, &expr.Var{Name: "t", Extent: f.Packed()}
	at := func(line, group, term expr.Expr) expr.Expr {
		return expr.AddE(expr.MulE(expr.AddE(expr.MulE(line, expr.I(schedule.TileColumns)), group), expr.I(f.Packed())), term)
	}
	a, b := expr.To(f.Sum(), x[1].At(at(row, group, term))), expr.To(f.Sum(), x[2].At(at(group, column, term)))
	sum := expr.AddE(expr.MulE(row, expr.I(schedule.TileColumns)), column)
	return ir.Nest(ir.Serial, ir.Block{ir.Add(x[0].Buffer, sum, expr.MulE(a, b))}, row, column, group, term)
}
