package lower

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// maxCount limits the tiles, or steps of their sums, that a kernel counts.
const maxCount = 1<<31 - 1

// levels records the surrounding GPU loops.
type levels struct{ blocks, threads bool }

// onGPU reports whether a leaf runs on blocks or threads.
func onGPU(it *schedule.Iter) bool { return it.Kind == schedule.Block || it.Kind == schedule.Thread }

// enter adds a loop. Blocks must not contain blocks, and threads neither blocks nor threads.
func (l *levels) enter(g *schedule.Stage, it *schedule.Iter) {
	switch {
	case l.threads:
		fail("iterator %d of stage %d, on blocks or threads, is inside one on threads", it.ID, g.ID)
	case l.blocks && it.Kind == schedule.Block:
		fail("iterator %d of stage %d, on blocks, is inside another", it.ID, g.ID)
	}
	l.blocks, l.threads = l.blocks || it.Kind == schedule.Block, it.Kind == schedule.Thread
}

// grid emits the tiles of the leaf at pos, which runs on blocks: one block each, or persistent blocks.
func (l *lowerer) grid(n *nest, pos int, tiles int64) ir.Block {
	it := n.g.Leaves[pos]
	if it.StreamKRounds > 0 && !n.init && !n.decay {
		return l.streamKLaunches(n, pos, tiles)
	}
	if tiles == 1 {
		return l.tile(n, pos, expr.I(0))
	}
	block := &expr.Var{Name: fmt.Sprintf("x%d_%d", n.g.ID, it.ID), Extent: tiles}
	walkers := it.PersistentBlocks
	if walkers == 0 || walkers >= tiles {
		return ir.Block{&ir.For{Var: block, Extent: tiles, Kind: ir.Blocks, Body: l.tile(n, pos, block)}}
	}
	if tiles > maxCount-walkers {
		fail("stage %d has %d tiles, more than blocks that walk can count", n.g.ID, tiles)
	}
	tile := block
	block = &expr.Var{Name: "block", Extent: walkers}
	body := l.tile(n, pos, tile)
	share := ir.Range{First: block, End: expr.I(tiles), Every: walkers, Mean: float64(tiles) / float64(walkers)}
	return ir.Block{&ir.For{Var: block, Extent: walkers, Kind: ir.Blocks,
		Tiles: &ir.Tiles{Count: tiles, Max: math.Ceil(share.Mean)},
		Body:  ir.Block{&ir.For{Var: tile, Extent: tiles, Kind: ir.Persistent, Range: &share, Body: body}}}}
}

// tile emits the loops inside the leaf at pos for a tile, numbered in the order of the schedule.
func (l *lowerer) tile(n *nest, pos int, number expr.Expr) ir.Block {
	it := n.g.Leaves[pos]
	n = n.clone()
	if it.RasterWidth == 0 || n.extent(it) == 1 {
		n.values[it] = number
		return l.enter(n, pos)
	}
	place := &expr.Var{Name: "tile", Extent: n.extent(it)}
	n.values[it] = place
	let := &ir.Let{Var: place, Value: rasterized(number, n.extent(it.Fused.A), n.extent(it.Fused.B), it.RasterWidth)}
	return append(ir.Block{let}, l.enter(n, pos)...)
}

// rasterized returns the row-major position of tile number k in a table of rows and columns that is counted by bands:
// each band has the given number of rows, the last one the rest, and is traversed column by column.
func rasterized(k expr.Expr, rows, columns, band int64) expr.Expr {
	band = min(band, rows)
	first := expr.MulE(expr.Bin(expr.FloorDiv, k, expr.I(band*columns)), expr.I(band))
	inside := expr.Bin(expr.FloorMod, k, expr.I(band*columns))
	place := func(high int64) expr.Expr {
		row := expr.AddE(first, expr.Bin(expr.FloorMod, inside, expr.I(high)))
		return expr.AddE(expr.MulE(row, expr.I(columns)), expr.Bin(expr.FloorDiv, inside, expr.I(high)))
	}
	whole := place(band)
	if rest := rows % band; rest > 0 {
		whole = expr.Sel(expr.Bin(expr.Lt, k, expr.I((rows-rest)*columns)), whole, place(rest))
	}
	return expr.Simplify(whole)
}
