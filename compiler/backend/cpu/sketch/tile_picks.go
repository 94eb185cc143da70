package sketch

import (
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// pickedTiles returns the numbers of vectors whose lanes are in groups known at compile time. A group that is wider
// than a vector, and not a multiple of one, is computed in one of two ways: a tile is a group with partial last
// vectors, or vectors continue across groups and pick their lanes from the data of several groups. In each step of
// the reduction they pick the elements of one channel of each group. The lanes picked for a position serve all steps
// with the same position and channel, so the axes of the window are innermost.
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

// loopOrder returns the order of the reduction's loops.
func (x *Tile) loopOrder() []int {
	order := sketch.Axes(len(x.reduce))
	if last := len(order) - 1; x.picks && last > 0 {
		order[last], order[last-1] = order[last-1], order[last]
	}
	return order
}

// sharedFor returns how many successive steps use the data loaded or picked for them: unrolled steps that differ only
// in their position in the window.
func (x *Tile) sharedFor(z tileSizes) int64 {
	axis := x.shared()
	if axis != x.order[len(x.order)-1] || z.kb > 0 || x.crosses(z) {
		return 1
	}
	return min(x.steps[axis], z.ku)
}

// shared returns the axis of the reduction along which steps share data: that of a window's columns.
func (x *Tile) shared() int {
	if x.picks {
		return max(0, len(x.reduce)-2)
	}
	return len(x.reduce) - 1
}

// sharedVectors returns how many vectors a tile of tv vectors loads, or picks lanes for, in one step.
func (x *Tile) sharedVectors(tv float64, z tileSizes) float64 {
	extents, steps, total := x.tileExtents(z), x.sharedFor(z), 0.0
	if steps > 1 {
		extents[len(x.extents)+x.shared()] = float64(steps)
	}
	for _, a := range x.accesses[:len(x.accesses)-1] {
		if a.MovesWith(x.vec) && (a.MovesWith(x.row) || a.MovesWith(x.col)) {
			total += tv * a.Elements(extents)
		}
	}
	return total / float64(steps)
}

// crossing returns how many vectors of a tile pick lanes, because they are not within one group.
func (x *Tile) crossing(tv float64) float64 {
	count := 0.0
	for first := int64(0); first < int64(tv)*x.lanes; first += x.lanes {
		if first/x.group != (first+x.lanes-1)/x.group {
			count++
		}
	}
	return count
}

// pickLoads returns how many loads a vector with picked lanes takes: two if it crosses lines, since the channels of
// its groups are not all unrolled, or if it belongs to two groups.
func (x *Tile) pickLoads(z tileSizes) float64 {
	if n := x.pickSources(); n > 2 {
		return float64(n)
	}
	if x.group < x.lanes/2 && z.ku >= x.reduce[len(x.reduce)-1]*x.sharedFor(z) {
		return 1
	}
	return 2
}

// pickSources returns how many vectors hold the data of a vector's groups: as many as a group has inputs per output.
func (x *Tile) pickSources() (n int64) {
	for _, a := range x.operands() {
		for d := range a.Tensor.Shape {
			n = max(n, int64(a.Coefficient(d, x.vec)))
		}
	}
	return n
}

// pickedFrom returns how many registers hold vectors that steps of other channels pick lanes from, too. Two groups
// need none: each lane is one of two elements.
func (x *Tile) pickedFrom(picked float64, z tileSizes) float64 {
	if steps := x.sharedFor(z); x.group < x.lanes/2 && z.ku >= 2*steps {
		return picked * float64(steps)
	}
	return 0
}

// maxRagged is the maximum number of vectors of a tile that is a group.
const maxRagged = 8

// fewerParts reports whether a tile that is a group has fewer instructions per channel than one whose vectors
// continue in the next group, each of which picks lanes once for all columns of a window.
func (x *Tile) fewerParts(lanes int64, acc *schedule.Stage) bool {
	vectors := microarch.Parts(x.group, lanes)
	if x.group < lanes || vectors > maxRagged || (RegisterTile{Rows: 1, Vectors: vectors, Unroll: 1}).Legal(x.target) != nil {
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
	instructions := float64(microarch.Parts(channels, lanes))
	for first := int64(0); first < channels; first += lanes {
		if last := min(first+lanes, channels) - 1; first/x.group != last/x.group {
			instructions += 1 / columns
		}
	}
	return float64(microarch.Parts(x.group, lanes)*channels) <= instructions*float64(x.group)
}
