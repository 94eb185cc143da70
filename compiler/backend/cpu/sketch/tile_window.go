package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// A tile whose reduction is an unrolled window, as in a depthwise convolution or pooling, reads each element once for
// all positions that share it, checks only borders that its loops do not know, and is so short that several are in
// flight.
const (
	// windowStart and windowEnd are the costs of starting a tile, and of each of its results.
	windowStart, windowEnd = 2, 0.75
	// windowSpill is the additional number of loads per element that the next line of the window reuses but that has
	// no register.
	windowSpill = 1.5
	// checkSpill is the cycles per window vector without a register if each load is checked: compilers move the sums
	// after all checks, and so keep everything live. A depthwise convolution of 112x112 with 32 channels in tiles of
	// 7x2 vectors of AVX-512 took twice as long as without checks on Zen 4.
	checkSpill = 1.5
)

// writtenOut reports whether a tile's reduction is an unrolled window. Positions that continue in the next row have
// no window.
func (x *Tile) writtenOut(z tileSizes) bool {
	return x.loadsOwn && !x.crosses(z) && z.kb == 0 && sketch.Product(x.steps) <= z.ku
}

// windowCycles returns the cycles of one tile of tv vectors whose reduction is unrolled.
func (x *Tile) windowCycles(t *target.Target, tv float64, z tileSizes) float64 {
	if x.turns() {
		return x.turnedCycles(t, tv, z)
	}
	acc, steps := tv*float64(z.th*z.tw), float64(sketch.Product(x.reduce))
	loads := x.windowLoads(t, tv, z) + steps*microarch.Spilled(t, acc)
	operations := acc*steps + loads + acc
	latency := microarch.ResultLatency * steps / max(1, microarch.InFlight/operations)
	multiply, load := acc*steps/2, loads*microarch.LoadSlot
	return microarch.Overlap(multiply, load, latency, operations/microarch.Issue) + windowEnd*acc + windowStart
}

// windowLoads returns how many vectors or broadcast numbers a tile of tv vectors reads, including reloads.
func (x *Tile) windowLoads(t *target.Target, tv float64, z tileSizes) float64 {
	line := x.tileExtents(z)
	line[len(line)-1] = float64(x.reduce[len(x.reduce)-1])
	if x.row >= 0 {
		line[x.row] = 1
	}
	live := tv * float64(z.th*z.tw)
	for _, a := range x.operands() {
		if a.MovesWith(x.row) || a.MovesWith(x.col) {
			live += x.vectorsOf(a, tv) * a.Elements(line) * float64(z.th)
		}
	}
	total := x.windowVectors(tv, z)
	if z.pf > 0 {
		total += tv * float64(sketch.Product(x.reduce)) / 2
	}
	return total + windowSpill*max(0, live-float64(t.CPU.VectorRegisters))
}

// windowVectors returns how many vectors or broadcast numbers a tile of tv vectors reads, each once.
func (x *Tile) windowVectors(tv float64, z tileSizes) (total float64) {
	window := x.tileExtents(z)
	copy(window[len(x.extents):], floats(x.reduce))
	for _, a := range x.operands() {
		total += x.vectorsOf(a, tv) * a.Elements(window)
	}
	return total
}

// operands returns the accesses of a reduction without its result.
func (x *Tile) operands() []cost.Access { return x.accesses[:len(x.accesses)-1] }

// vectorsOf returns how many of tv vectors an access reads separately.
func (x *Tile) vectorsOf(a cost.Access, tv float64) float64 {
	if a.MovesWith(x.vec) {
		return tv
	}
	return 1
}

// checksCycles returns the cycles of the checks of one tile of tv vectors if joint positions check each load.
func (x *Tile) checksCycles(t *target.Target, tv float64, z tileSizes) float64 {
	if len(x.joint) == 0 || x.inside == 0 || x.inside == 1 {
		return 0
	}
	live := tv*float64(z.th*z.tw) + x.windowVectors(tv, z)
	return checkSpill * max(0, live-float64(t.CPU.VectorRegisters))
}

// tileExtents returns the extents of a tile of one vector and one step of the reduction.
func (x *Tile) tileExtents(z tileSizes) []float64 {
	extents := slices.Repeat([]float64{1}, len(x.extents)+len(x.reduce))
	if x.col >= 0 {
		extents[x.col] = float64(z.tw)
	}
	if x.row >= 0 {
		extents[x.row] = float64(z.th)
	}
	x.spread(extents)
	return extents
}
