package ir

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// NewTile returns tile register number n, below schedule.TileRegisters. It holds elements of a type until the end
// of the block of its Alloc.
func NewTile(n int, name string, d array.DType) *Buffer {
	return &Buffer{Tensor: Flat(name, d, schedule.TileRows*schedule.TileRowBytes/d.Bytes()), Space: Tile, Index: n}
}

// TileZero zeroes a tile.
type TileZero struct{ Tile *Buffer }

// TileLoad fills a tile with rows of 64 bytes, RowElements apart, starting at Index.
type TileLoad struct {
	Tile        *Buffer
	From        *expr.Tensor
	Index       expr.Expr
	RowElements int64
}

// TileProduct adds the product of two tiles to the sums of another: to element m, n the products of row m of A with
// column n of B, which holds the terms of a column in groups of Format.Packed, one group per row.
type TileProduct struct {
	Format    schedule.Format
	Sum, A, B *Buffer
}

// TileStore stores the rows of a tile RowElements apart, starting at Index.
type TileStore struct {
	Tile        *Buffer
	To          *Buffer
	Index       expr.Expr
	RowElements int64
}

func (*TileZero) stmt()    {}
func (*TileLoad) stmt()    {}
func (*TileProduct) stmt() {}
func (*TileStore) stmt()   {}

// tile prints a statement on tiles.
func (t *texter) tile(st Stmt) {
	switch n := st.(type) {
	case *TileZero:
		t.line("%s = 0", n.Tile.Tensor.Name)
	case *TileLoad:
		t.line("%s = rows of %s[%s], %d apart", n.Tile.Tensor.Name, n.From.Name, t.expr(n.Index), n.RowElements)
	case *TileProduct:
		t.line("%s = it + %v product of %s and %s", n.Sum.Tensor.Name, n.Format, n.A.Tensor.Name, n.B.Tensor.Name)
	case *TileStore:
		t.line("rows of %s[%s], %d apart = %s", n.To.Tensor.Name, t.expr(n.Index), n.RowElements, n.Tile.Tensor.Name)
	}
}

// tileExprs calls f for the operands and destinations of a statement on tiles.
func tileExprs(st Stmt, f func(expr.Expr)) {
	first := func(b *Buffer) { f(b.Tensor.At(expr.I(0))) }
	switch n := st.(type) {
	case *TileLoad:
		f(n.From.At(n.Index))
	case *TileProduct:
		first(n.Sum)
		first(n.A)
		first(n.B)
	case *TileStore:
		f(n.To.Tensor.At(n.Index))
		first(n.Tile)
	}
}

// isTiles reports whether a statement on tiles has only tiles as sums and operands, of matching types.
func isTiles(st Stmt) bool {
	in := func(list ...*Buffer) bool {
		return !slices.ContainsFunc(list, func(b *Buffer) bool { return b.Space != Tile })
	}
	switch n := st.(type) {
	case *TileZero:
		return in(n.Tile)
	case *TileLoad:
		return in(n.Tile)
	case *TileProduct:
		return in(n.Sum, n.A, n.B)
	case *TileStore:
		return in(n.Tile) && n.To.Space != Tile
	}
	return true
}
