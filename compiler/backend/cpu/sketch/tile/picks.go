package tile

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch/core"
)

// Vectors that are no part of a group pick their lanes from what several groups read: in each step of the reduction
// the elements of one channel of each group. What is picked for a position serves all steps that read the same
// position and channel, so the axes of the window are innermost.

// pickedTiles are the numbers of vectors whose lanes are in groups that are known when a tile is compiled.
func (x *Tile) pickedTiles(lanes int64) (list []int64) {
	for tv := int64(1); tv <= 8; tv++ {
		fits := core.RegisterTile{Rows: 1, Vectors: tv, Unroll: 1}.Legal(x.target) == nil
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

// picksFor is how many steps, one after the other, use what is picked for them: those that are written out and differ
// only in where in the window they are.
func (x *Tile) picksFor(z sizes) int64 {
	steps := int64(1)
	for _, k := range slices.Backward(x.order) {
		if k == len(x.reduce)-1 || steps*x.reduce[k] > z.ku {
			break
		}
		steps *= x.reduce[k]
	}
	return steps
}

// pickedVectors is how many vectors a tile of tv vectors picks lanes for in one step.
func (x *Tile) pickedVectors(tv float64, z sizes) float64 {
	extents, steps, total := x.tileExtents(z), x.picksFor(z), 0.0
	if steps > 1 {
		extents[len(x.extents)+len(x.reduce)-2] = steps
	}
	for _, a := range x.accesses[:len(x.accesses)-1] {
		if a.MovesWith(x.vec) && (x.row >= 0 && a.MovesWith(x.row) || x.col >= 0 && a.MovesWith(x.col)) {
			total += tv * a.Elements(extents)
		}
	}
	return total / float64(steps)
}
