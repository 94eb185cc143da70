package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Nest holds the loops around a tile, innermost first, as far as they matter to caches: the axis of each and its trip
// count. It lets sketches evaluate thousands of points per second from numbers alone; package cost also derives such
// loops from whole schedules.
type Nest struct {
	// Tile holds the extents of all axes within a tile, Limits those of the workload.
	Tile, Limits []float64
	Loops        []Loop
	// Mapped ignores TLB misses. It is set for sums over windows of few channels, whose points are ordered better
	// without them on Emerald Rapids and Zen 4.
	Mapped bool
	// Spread divides the extent of joint axes among them, in place; nil without joint axes.
	Spread func(extents []float64)
}

// Loop advances an axis by a number of steps.
type Loop struct {
	Axis  int
	Times int64
}

// blocking describes how the results of a reduction are divided into tiles and blocks of tiles.
type blocking struct {
	// axes holds the axes of a tile's vectors, columns and rows, or -1, and tile its extents along them.
	axes [3]int
	tile [3]int64
	// rowTiles and vecTiles are the numbers of tiles per block, those of columns without rows.
	rowTiles, vecTiles int64
	// inner is the order of the tiles of a block: 0 with the vectors inside, 1 with the positions inside. outer is
	// that of blocks.
	inner, outer int64
}

// newNest returns the nest of tiles with all terms of a reduction. The loops over a block come first.
func newNest(extents, reduce []int64, b blocking) *Nest {
	n := &Nest{Tile: floats(extents, reduce), Limits: floats(extents, reduce), Loops: make([]Loop, 5, 5+len(extents))}
	for k, e := range extents {
		if n.Tile[k] = 1; !slices.Contains(b.axes[:], k) {
			n.Loops = append(n.Loops, Loop{k, e})
		}
	}
	var tiles [3]int64
	for i, k := range b.axes {
		if tiles[i] = 1; k >= 0 {
			n.Tile[k], tiles[i] = min(float64(b.tile[i]), n.Limits[k]), sketch.CeilDiv(extents[k], b.tile[i])
		}
	}
	vec, col, row := b.axes[0], b.axes[1], b.axes[2]
	columns, rows, blocks := Loop{col, tiles[1]}, Loop{row, b.rowTiles}, Loop{row, tiles[2] / b.rowTiles}
	if row < 0 {
		columns, rows, blocks = Loop{col, b.rowTiles}, Loop{row, 1}, Loop{col, tiles[1] / b.rowTiles}
	}
	vectors, strips := Loop{vec, b.vecTiles}, Loop{vec, tiles[0] / b.vecTiles}
	copy(n.Loops, []Loop{vectors, columns, rows, strips, blocks})
	if b.inner == 1 {
		copy(n.Loops, []Loop{columns, rows, vectors})
	}
	if b.outer == 1 {
		copy(n.Loops[3:], []Loop{blocks, strips})
	}
	return n
}

// chunks returns how many blocks workers share: as often as the loops around a block run.
func (n *Nest) chunks() float64 {
	chunks := 1.0
	for _, l := range n.Loops[3:] {
		chunks *= float64(l.Times)
	}
	return chunks
}

// widen multiplies the extent of a loop's axis.
func (n *Nest) widen(extents []float64, l Loop) {
	if l.Axis >= 0 {
		extents[l.Axis] = min(extents[l.Axis]*float64(l.Times), n.Limits[l.Axis])
	}
}

// spread returns the extents with those of joint axes divided among them.
func (n *Nest) spread(extents []float64) []float64 {
	if n.Spread == nil {
		return extents
	}
	extents = slices.Clone(extents)
	n.Spread(extents)
	return extents
}

// around returns the loops as cost.Follow takes them.
func (n *Nest) around() []cost.Around {
	list, extents := make([]cost.Around, 0, len(n.Loops)), slices.Clone(n.Tile)
	room := make([]float64, len(n.Loops)*len(extents))
	for _, l := range n.Loops {
		if l.Axis >= 0 && l.Times > 1 {
			n.widen(extents, l)
			axes := room[:len(extents):len(extents)]
			room = room[len(extents):]
			copy(axes, extents)
			list = append(list, cost.Around{Trips: float64(l.Times), Axes: n.spread(axes)})
		}
	}
	return list
}

// Waiting returns the cycles of cache fills. Unlike those of a schedule, they take into account what caches prefetch.
func (n *Nest) Waiting(t *target.Target, list []cost.Access) float64 {
	traffic := cost.Follow(t, list, n.spread(n.Tile), n.around())
	whole := traffic.Loops[len(traffic.Loops)-1].Touch
	total, run := 0.0, slices.Clone(n.Tile)
	n.widen(run, n.Loops[0])
	run = n.spread(run)
	for depth, l := range microarch.Levels(t) {
		sum := whole.Of(l.Pages)
		if l.Pages && n.Mapped || l.Shared && sum <= l.Capacity {
			continue
		}
		for k := range list {
			f := traffic.Buffers[k].Fills[depth]
			// Caches prefetch some lines beside scattered ones in vain. The first-level cache fills at the same rate
			// from any line of the second-level cache.
			if depth > 0 && !l.Pages && sum > l.Capacity {
				f *= 1 + microarch.Apart/max(1, float64(list[k].Run(run))/float64(microarch.Line(t)))
			}
			if list[k].Packed && !l.Pages {
				f *= microarch.Ahead * microarch.Wide(t)
			}
			total += f * l.Cycles
		}
	}
	return total
}

// Block widens the extents of a tile to those of its block, the innermost three loops.
func (n *Nest) Block(extents []float64) {
	for _, l := range n.Loops[:3] {
		n.widen(extents, l)
	}
}

// Fed returns the extents of the axes for which the stages that feed a reduction are computed at a time, and how
// often: on their own, in the block or in the tile.
func (n *Nest) Fed(where int64) (extents []float64, times float64) {
	extents, around := slices.Clone(n.Tile), n.Loops
	switch where {
	case sketch.Alone:
		copy(extents, n.Limits)
		around = nil
	case sketch.InBlock:
		n.Block(extents)
		around = around[3:]
	}
	times = 1
	for _, loop := range around {
		times *= float64(loop.Times)
	}
	return extents, times
}

// floats converts lists of extents to one list.
func floats(lists ...[]int64) []float64 {
	all := make([]float64, 0, 12)
	for _, list := range lists {
		for _, n := range list {
			all = append(all, float64(n))
		}
	}
	return all
}
