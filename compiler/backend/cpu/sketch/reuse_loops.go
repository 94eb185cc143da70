package sketch

import (
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Nest holds the loops around a tile, innermost first, as far as they matter to caches: the axis of each and its trip
// count. It lets sketches evaluate thousands of points per second from numbers alone; package cost analyses whole
// schedules in the same way.
type Nest struct {
	// Tile holds the extents of all axes within a tile, Limits those of the workload.
	Tile, Limits []int64
	Loops        []Loop
	// Mapped ignores TLB misses. It is set for sums over windows of few channels, whose points are ordered better
	// without them on Emerald Rapids and Zen 4.
	Mapped bool
}

// Loop advances an axis by a number of steps.
type Loop struct {
	Axis  int
	Times int64
}

// Waiting returns the cycles of cache fills. Following the loops outwards, data shared by iterations stays in a cache
// that holds everything one iteration touches, and is refilled each time in a smaller one.
func (n Nest) Waiting(t *target.Target, list []Access) float64 {
	total := 0.0
	line := microarch.Line(t)
	fills := make([]float64, len(list))
	inner, outer := make([]float64, len(list)), make([]float64, len(list))
	for depth, l := range microarch.Levels(t) {
		if l.Pages && n.Mapped {
			continue
		}
		extents := append([]int64{}, n.Tile...)
		sum := touch(l.Pages, list, extents, line, inner)
		copy(fills, inner)
		for _, loop := range n.Loops {
			if loop.Axis < 0 || loop.Times <= 1 {
				continue
			}
			extents[loop.Axis] = min(extents[loop.Axis]*loop.Times, n.Limits[loop.Axis])
			grown := touch(l.Pages, list, extents, line, outer)
			for k := range fills {
				fills[k] *= l.Growth(sum, inner[k], outer[k], float64(loop.Times))
			}
			sum = grown
			inner, outer = outer, inner
		}
		if l.Shared && sum <= l.Capacity {
			continue
		}
		// The first-level cache fills at the same rate from any line of the second-level cache.
		if depth > 0 && !l.Pages && sum > l.Capacity {
			n.scatter(list, fills, line)
		}
		for k, f := range fills {
			if list[k].Packed && !l.Pages {
				f *= microarch.Ahead * microarch.Wide(t)
			}
			total += f * l.Cycles
		}
	}
	return total
}

// Block widens the extents of a tile to those of its block, the innermost three loops.
func (n Nest) Block(extents []int64) {
	for _, loop := range n.Loops[:3] {
		if loop.Axis >= 0 {
			extents[loop.Axis] = min(extents[loop.Axis]*loop.Times, n.Limits[loop.Axis])
		}
	}
}

// Fed returns the extents of the axes for which the stages that feed a reduction are computed at a time, and how
// often: on their own, in the block or in the tile.
func (n Nest) Fed(where int64) (extents []int64, times float64) {
	extents, around := append([]int64{}, n.Tile...), n.Loops
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

// scatter increases the fills of accesses with scattered lines, after which caches prefetch some lines in vain.
func (n Nest) scatter(list []Access, fills []float64, line int64) {
	run := append([]int64{}, n.Tile...)
	if v := n.Loops[0]; v.Axis >= 0 {
		run[v.Axis] = min(run[v.Axis]*v.Times, n.Limits[v.Axis])
	}
	for k := range fills {
		fills[k] *= 1 + microarch.Apart/max(1, float64(list[k].run(run))/float64(line))
	}
}

// touch stores the lines or pages touched by each access in each, and returns their sum.
func touch(inPages bool, list []Access, extents []int64, lineBytes int64, each []float64) float64 {
	sum := 0.0
	for k := range list {
		lines, pages := list[k].Touched(extents, lineBytes)
		each[k] = lines
		if inPages {
			each[k] = pages
		}
		sum += each[k]
	}
	return sum
}
