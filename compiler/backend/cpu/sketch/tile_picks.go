package sketch

import (
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Groups that are wider than a vector, and no multiple of one, are computed in one of two ways: a tile is a group,
// with its last vectors cut short, or vectors go on from one group to the next.
//
// Vectors that are no part of a group pick their lanes from what several groups read: in each step of the reduction
// the elements of one channel of each group. What is picked for a position serves all steps that read the same
// position and channel, so the axes of the window are innermost.

// pickedTiles are the numbers of vectors whose lanes are in groups that are known when a tile is compiled.
func (x *Tile) pickedTiles(lanes int64) (list []int64) {
	for tv := int64(1); tv <= 8; tv++ {
		fits := RegisterTile{Rows: 1, Vectors: tv, Unroll: 1}.Legal(x.target) == nil
		if fits && x.fitsGroups(tv*lanes) {
			list = append(list, tv)
		}
		if tv*lanes >= x.extent(x.vec) {
			break
		}
	}
	return list
}

// loopOrder is the order of the reduction's loops.
func (x *Tile) loopOrder() []int {
	order := make([]int, len(x.reduce))
	for k := range order {
		order[k] = k
	}
	if last := len(order) - 1; x.picks && last > 0 {
		order[last], order[last-1] = order[last-1], order[last]
	}
	return order
}

// sharedFor is how many steps, one after the other, use what is loaded or picked for them: those that are written out
// and differ only in where in the window they are.
func (x *Tile) sharedFor(z tileSizes) int64 {
	axis := x.shared()
	if axis != x.order[len(x.order)-1] || z.kb > 0 || x.crosses(z) {
		return 1
	}
	return min(x.steps[axis], z.ku)
}

// shared is the axis of the reduction along which steps use what others do: that of a window's columns.
func (x *Tile) shared() int {
	if x.picks {
		return max(0, len(x.reduce)-2)
	}
	return len(x.reduce) - 1
}

// sharedVectors is how many vectors a tile of tv vectors loads, or picks lanes for, in one step.
func (x *Tile) sharedVectors(tv float64, z tileSizes) float64 {
	extents, steps, total := x.tileExtents(z), x.sharedFor(z), 0.0
	if steps > 1 {
		extents[len(x.extents)+x.shared()] = steps
	}
	for _, a := range x.accesses[:len(x.accesses)-1] {
		if a.MovesWith(x.vec) && (x.row >= 0 && a.MovesWith(x.row) || x.col >= 0 && a.MovesWith(x.col)) {
			total += tv * a.Elements(extents)
		}
	}
	return total / float64(steps)
}

// crossing is how many of the vectors of a tile pick lanes: those that are not within one group.
func (x *Tile) crossing(tv float64) float64 {
	count := 0.0
	for first := int64(0); first < int64(tv)*x.lanes; first += x.lanes {
		if first/x.group != (first+x.lanes-1)/x.group {
			count++
		}
	}
	return count
}

// pickLoads is how many loads a vector takes whose lanes are picked: two where it lies across lines, since the
// channels of its groups are not all written out, or where it is of two groups.
func (x *Tile) pickLoads(z tileSizes) float64 {
	if n := x.pickSources(); n > 2 {
		return float64(n)
	}
	if x.group < x.lanes/2 && z.ku >= x.reduce[len(x.reduce)-1]*x.sharedFor(z) {
		return 1
	}
	return 2
}

// pickSources is how many vectors have what the groups of one read: as many as a group has inputs for each output.
func (x *Tile) pickSources() (n int64) {
	for _, a := range x.accesses[:len(x.accesses)-1] {
		for d := range a.Groups {
			n = max(n, a.Dims[d][x.vec])
		}
	}
	return n
}

// pickSteps is how many instructions pick the lanes of a vector: each picks from two.
func (x *Tile) pickSteps() float64 { return float64(max(1, x.pickSources()-1)) }

// pickedFrom is how many registers have vectors that steps of other channels pick lanes from, too. Two groups have
// none: each lane is that of one of two elements.
func (x *Tile) pickedFrom(picked float64, z tileSizes) float64 {
	if steps := x.sharedFor(z); x.group < x.lanes/2 && z.ku >= 2*steps {
		return picked * float64(steps)
	}
	return 0
}

// mostRagged are the vectors that a tile may have which is a group.
const mostRagged = 8

// fewerParts reports whether a tile that is a group has fewer instructions for a channel than one whose vectors go on
// in the next group, each of which picks lanes once for all columns of a window.
func (x *Tile) fewerParts(lanes int64, acc *schedule.Stage) bool {
	vectors := parts(x.group, lanes)
	if x.group < lanes || vectors > mostRagged || (RegisterTile{Rows: 1, Vectors: vectors, Unroll: 1}).Legal(x.target) != nil {
		return false
	}
	tiles, columns := x.pickedTiles(lanes), 1.0
	if len(tiles) == 0 {
		return true
	}
	if last := len(acc.Reduce) - 1; last > 0 {
		columns = float64(acc.Reduce[last-1].Extent)
	}
	channels := min(tiles[0]*lanes, x.extent(x.vec))
	instructions := float64(parts(channels, lanes))
	for first := int64(0); first < channels; first += lanes {
		if last := min(first+lanes, channels) - 1; first/x.group != last/x.group {
			instructions += 1 / columns
		}
	}
	return float64(parts(x.group, lanes)*channels) <= instructions*float64(x.group)
}
