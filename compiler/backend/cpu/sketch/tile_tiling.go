package sketch

import (
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

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
