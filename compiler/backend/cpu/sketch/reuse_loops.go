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

// newNest returns the nest of a tile with a single result, without loops.
func newNest(extents, reduce []int64) *Nest {
	n := &Nest{Tile: floats(extents, reduce), Limits: floats(extents, reduce)}
	for k := range extents {
		n.Tile[k] = 1
	}
	return n
}

// Loop advances an axis by a number of steps.
type Loop struct {
	Axis  int
	Times int64
}

// widen multiplies the extent of a loop's axis.
func (n *Nest) widen(extents []float64, l Loop) {
	if l.Axis >= 0 {
		extents[l.Axis] = min(extents[l.Axis]*float64(l.Times), n.Limits[l.Axis])
	}
}

// spread returns the extents with those of joint axes divided among them.
func (n *Nest) spread(extents []float64) []float64 {
	extents = slices.Clone(extents)
	if n.Spread != nil {
		n.Spread(extents)
	}
	return extents
}

// around returns the loops as cost.Follow takes them.
func (n *Nest) around() (list []cost.Around) {
	extents := slices.Clone(n.Tile)
	for _, l := range n.Loops {
		if l.Axis >= 0 && l.Times > 1 {
			n.widen(extents, l)
			list = append(list, cost.Around{Trips: float64(l.Times), Axes: n.spread(extents)})
		}
	}
	return list
}

// Waiting returns the cycles of cache fills. Unlike those of a schedule, they take into account what caches prefetch.
func (n *Nest) Waiting(t *target.Target, list []cost.Access) float64 {
	traffic := cost.Follow(t, list, n.spread(n.Tile), n.around())
	whole := traffic.Loops[len(traffic.Loops)-1].Touch
	total := 0.0
	for depth, l := range microarch.Levels(t) {
		sum := whole.Of(l.Pages)
		if l.Pages && n.Mapped || l.Shared && sum <= l.Capacity {
			continue
		}
		for k := range list {
			f := traffic.Buffers[k].Fills[depth]
			// The first-level cache fills at the same rate from any line of the second-level cache.
			if depth > 0 && !l.Pages && sum > l.Capacity {
				f *= n.scattered(&list[k], microarch.Line(t))
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

// scattered returns the factor of the fills of an access with scattered lines, after which caches prefetch some lines
// in vain.
func (n *Nest) scattered(a *cost.Access, line int64) float64 {
	run := slices.Clone(n.Tile)
	n.widen(run, n.Loops[0])
	return 1 + microarch.Apart/max(1, float64(a.Run(n.spread(run)))/float64(line))
}

// floats converts lists of extents to one list.
func floats(lists ...[]int64) (all []float64) {
	for _, list := range lists {
		for _, n := range list {
			all = append(all, float64(n))
		}
	}
	return all
}
