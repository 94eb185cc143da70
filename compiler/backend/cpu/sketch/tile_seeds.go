package sketch

import (
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// seeds returns the hand-written register tiles that are known to be good on each register file, in several cache
// blockings.
func (x *Tile) seeds(by searchspace.Algorithm) (list []searchspace.Candidate[TileParameters]) {
	tiles, rest := tilesFor(x.target.CPU.VectorRegisters, x.target.CPU.VectorBytes), blockings()
	if x.dot != nil && x.dot.squares { // an even number of positions
		tiles = []accumulators{{1, 8, 3}, {1, 12, 2}, {1, 6, 3}, {1, 4, 4}, {1, 2, 6}, {2, 4, 3}, {2, 7, 1}, {1, 14, 1}, {1, 8, 2}, {1, 4, 2}}
	}
	if x.loadsOwn {
		// The positions share a window's data, for which the tiles leave registers. Windows are unrolled fully.
		tiles = append(tiles, []accumulators{{2, 2, 2}, {4, 2, 1}, {4, 1, 1}, {2, 3, 1}, {2, 2, 1}, {1, 7, 1}, {1, 4, 2}, {4, 2, 2}, {4, 4, 1}}...)
		rest = append([]TileParameters{
			{RowTiles: 1024, VectorTiles: 64, Outer: 1, Unroll: 1024, Feed: sketch.Inline},
			{RowTiles: 7, VectorTiles: 8, Unroll: 1024, Feed: sketch.Inline},
			{RowTiles: 4, VectorTiles: 64, Outer: 1, Unroll: 1024, Feed: sketch.Inline},
		}, rest...)
	}
	if x.picks {
		// The tiles leave registers for picked lanes. The columns of a window and a few channels are unrolled.
		tiles = append(tiles, accumulators{1, 14, 1}, accumulators{1, 7, 2})
		rest = append([]TileParameters{
			{RowTiles: 4, VectorTiles: 64, Outer: 1, Unroll: 16, Feed: sketch.Inline},
			{RowTiles: 28, VectorTiles: 64, Outer: 1, Unroll: 8, Feed: sketch.Inline},
		}, rest...)
	}
	for _, t := range tiles {
		for _, p := range rest {
			p.Rows, p.Columns, p.Vectors = t.rows, t.columns, t.vectors
			list = append(list, x.ways(by, p)...)
		}
	}
	return list
}

// ways returns parameters with positions along one axis and along both, and with weights cast at each read and in
// advance. No descent leads from a good tile of one kind to a good tile of the other.
func (x *Tile) ways(by searchspace.Algorithm, p TileParameters) (list []searchspace.Candidate[TileParameters]) {
	for p.Wide = 0; p.Wide == 0 || p.Wide == 1 && x.narrow.widened != nil; p.Wide++ {
		for p.Joint = 0; p.Joint <= 1; p.Joint++ {
			list = append(list, searchspace.Candidate[TileParameters]{By: by, Parameters: p})
		}
	}
	return list
}

// accumulators is a block of rows x columns x vectors that a tile keeps in registers.
type accumulators struct{ rows, columns, vectors int64 }

// tilesFor returns the register tiles for a register file.
func tilesFor(registers, vectorBytes int) []accumulators {
	switch {
	case registers >= 32 && vectorBytes >= 64: // AVX-512
		return []accumulators{
			{1, 14, 2}, {1, 7, 4}, {1, 6, 4}, {1, 4, 6}, {1, 28, 1}, {1, 12, 2},
			{2, 7, 2}, {1, 4, 4}, {1, 8, 3}, {4, 7, 1}, {1, 1, 8},
		}
	case registers >= 32: // Neon
		return []accumulators{{1, 8, 3}, {1, 6, 4}, {1, 12, 2}, {1, 7, 3}, {1, 4, 4}, {2, 4, 3}, {1, 1, 8}}
	default: // AVX2
		return []accumulators{
			{1, 6, 2}, {1, 4, 3}, {2, 3, 2}, {3, 2, 2}, {2, 2, 3}, {4, 1, 3},
			{1, 12, 1}, {1, 3, 4}, {1, 7, 1}, {1, 4, 2}, {1, 1, 8},
		}
	}
}

// blockings returns matching parameters.
func blockings() []TileParameters {
	return []TileParameters{
		{RowTiles: 1024, VectorTiles: 1, Inner: 1, Unroll: 1, Prefetch: 1024, Feed: sketch.Alone},
		{RowTiles: 4, VectorTiles: 64, Inner: 1, Unroll: 2, Feed: sketch.InBlock, Pack: 1},
		{RowTiles: 8, VectorTiles: 4, Outer: 1, Unroll: 4, Prefetch: 2048, Feed: sketch.Alone},
		{RowTiles: 1, VectorTiles: 64, Unroll: 4, Reduce: 64, Feed: sketch.Alone},
		{RowTiles: 56, VectorTiles: 2, Outer: 1, Unroll: 9, Feed: sketch.Inline},
		{RowTiles: 14, VectorTiles: 8, Outer: 1, Inner: 1, Unroll: 4, Reduce: 16, Prefetch: 1024, Feed: sketch.InBlock, Pack: 1},
	}
}

// yielding and lasting are priorities: wishes about the register tile yield before those about the order of tiles:
// most illegal points have a tile that does not fit into the registers.
const yielding, lasting = 1, 4

// tiled returns a tiling as knobs. If the positions have one axis, a tile has its rows and columns side by side there.
func (x *Tile) tiled(t searchspace.Tiling) (wishes []searchspace.Wish) {
	if x.vec < 0 || x.matrices != nil || t.Channels < 1 {
		return nil
	}
	columns, rows := max(1, t.Columns), max(1, t.Rows)
	if x.row < 0 {
		columns, rows = columns*rows, 1
	}
	wish := func(knob string, value int64, weight float64) {
		wishes = append(wishes, searchspace.Wish{Knob: knob, Value: value, Weight: weight})
	}
	wish("tv", sketch.CeilDiv(t.Channels, x.lanes), yielding)
	wish("tw", columns, yielding)
	wish("th", rows, yielding)
	if t.Unroll > 0 {
		wish("ku", t.Unroll, yielding)
	}
	if t.ChannelTiles > 0 {
		wish("cb", t.ChannelTiles, lasting)
	}
	if t.RowTiles > 0 && (x.row >= 0 || t.ColumnTiles > 0) {
		tiles := t.RowTiles
		if x.row < 0 {
			tiles *= t.ColumnTiles
		}
		wish("hb", tiles, lasting)
	}
	if t.Reduce > 0 && len(x.reduce) > 1 {
		block := t.Reduce
		if block >= x.reduce[len(x.reduce)-1] {
			block = 0
		}
		wish("kb", block, lasting)
	}
	switch t.Outside {
	case searchspace.ChannelsOutside:
		wish("outer", 1, lasting)
	case searchspace.PositionsOutside:
		wish("outer", 0, lasting)
	}
	return wishes
}
