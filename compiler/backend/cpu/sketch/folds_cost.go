package sketch

import (
	"math/bits"
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

const (
	// copied is the cycles of copying a vector of padding in the first-level cache, in units of microarch.Wide.
	copied = 1.5
	// foldCycles is the cycles of reducing two vectors to one: two permutations and an addition.
	foldCycles = 1.5
	// storeCycles is the additional cycles of storing a vector of results, also for each map after the sum.
	storeCycles = 2.5
	// tileCycles is the cycles of the loops around a tile.
	tileCycles = 6
	// spilled is the number of loads per vector without a register. Fitted on Zen 4.
	spilled = 6
)

// Cost implements searchspace.Structure. It adds the cycles of tiles, of waiting for memory, and of copying padding.
func (x *folds) Cost(p foldsParameters) float64 {
	t, z := x.target, x.sizes(p)
	n := x.nest(z)
	inside := 1.0
	if z.feed == sketch.Inline && x.inside > 0 {
		inside = x.inside
	}
	tiles := float64(sketch.CeilDiv(x.extents[x.col], z.columns)) * x.outside()
	work := float64(x.extents[x.out]/z.outputs) * x.cycles(z, z.outputs, inside)
	if rest := x.extents[x.out] % z.outputs; rest > 0 {
		work += x.cycles(z, rest, inside)
	}
	work *= tiles
	waiting := n.Waiting(t, slices.Concat(x.accesses[:len(x.accesses)-1], x.ends))
	work = max(work, waiting) + microarch.WindowWaits(t)*min(work, waiting) + x.feedCycles(z, n)
	return microarch.Elapsed(t, work+microarch.ChunkStart*n.chunks(), n.chunks())
}

// outside returns the number of positions along all axes except columns.
func (x *folds) outside() float64 {
	n := 1.0
	for _, k := range x.around() {
		n *= float64(x.extents[k])
	}
	return n
}

// cycles returns the cycles of a tile. inside is the fraction of its products outside the padding.
func (x *folds) cycles(z foldsParameters, outputs int64, inside float64) float64 {
	t, vectors := x.target, float64(x.vectors(outputs, z.factor))
	acc := vectors * float64(z.columns)
	picked := x.dataVectors(z, vectors)
	// Data that a window's columns share is in registers at once. The excess is spilled and reloaded.
	over := acc + x.shared(z)*picked + 2 - float64(t.CPU.VectorRegisters)
	loads := vectors + picked + spilled*max(0, over)
	if x.group > 1 && x.group*z.factor%x.lanes != 0 {
		loads += picked // picked lanes come from two vectors
	}
	if x.group == 1 {
		picked = 0 // terms already have the order of the data
	}
	busy := acc/microarch.Arithmetic + microarch.Picking(t, picked)
	loading := microarch.Loading(t, loads, 0)
	step := microarch.Overlap(busy, loading, microarch.ResultLatency, (acc+picked+loads+2/float64(z.unroll))/microarch.Issue)
	step += 0.5 / float64(z.unroll)
	steps := inside * float64(x.steps(z.factor))
	return steps*step + foldCycles*x.foldings(z, outputs) + storeCycles*float64(z.columns)*float64(len(x.ends)) + tileCycles
}

// foldings returns how often two vectors, or the halves of one, are combined until each sum of a tile has its own
// lane.
func (x *folds) foldings(z foldsParameters, outputs int64) float64 {
	columns, vectors := float64(z.columns), float64(x.vectors(outputs, z.factor))
	if outputs == z.outputs && x.sideBySide(z) > 1 {
		return columns * vectors * (1 - 1/float64(z.factor))
	}
	halves := 0.0
	if outputs < x.lanes {
		halves = float64(bits.Len64(uint64(min(z.factor, x.lanes/outputs)))) - 1
	}
	return columns * (vectors - 1 + halves)
}

// dataVectors returns how many vectors of data a step loads for a tile with that many vectors per position. Unrolled
// columns of a window reuse each other's loads.
func (x *folds) dataVectors(z foldsParameters, vectors float64) float64 {
	groups := vectors
	if same := float64(x.group*z.factor) / float64(x.lanes); same > 1 {
		groups = max(1, vectors/same)
	}
	extents := slices.Repeat([]float64{1}, len(x.extents)+len(x.reduce))
	shared := x.shared(z)
	extents[x.col], extents[len(extents)-2] = float64(z.columns), shared
	return groups * min(float64(z.columns), x.data().Elements(extents)/shared)
}

// shared returns how many steps along the columns of a window are unrolled together.
func (x *folds) shared(z foldsParameters) float64 {
	if x.terms == 0 {
		return 1
	}
	return float64(min(z.unroll, x.reduce[x.terms-1]))
}

// data returns the access to the data.
func (x *folds) data() *cost.Access {
	for k := range x.accesses {
		if a := &x.accesses[k]; !a.Packed {
			return a
		}
	}
	return nil
}

// nest returns the loops around a tile. Without rows, a block has all columns.
func (x *folds) nest(z foldsParameters) *Nest {
	b := blocking{axes: [3]int{x.out, x.col, x.row}, tile: [3]int64{z.outputs, z.columns, 1}, rowTiles: z.rows, vecTiles: 1, inner: 1, outer: z.order}
	if x.row < 0 {
		b.rowTiles = sketch.CeilDiv(x.extents[x.col], z.columns)
	}
	n := newNest(x.extents, x.reduce, b)
	n.Mapped = true
	return n
}

// feedCycles returns the cycles of the stages that feed the reduction, at the place that the parameters select.
func (x *folds) feedCycles(z foldsParameters, n *Nest) float64 {
	if !x.fed {
		return 0
	}
	perVector := 0.5 * float64(x.feedOps)
	if z.feed == sketch.Inline { // at each load
		vectors := x.dataVectors(z, float64(x.vectors(z.outputs, z.factor))) * float64(sketch.CeilDiv(x.extents[x.out], z.outputs)*x.steps(z.factor))
		return perVector * vectors * float64(sketch.CeilDiv(x.extents[x.col], z.columns)) * x.outside()
	}
	extents, times := n.Fed(z.feed)
	cycles := times * x.data().Elements(extents) / float64(x.lanes) * (copied*microarch.Wide(x.target) + perVector)
	if z.feed == sketch.Alone { // to the second-level cache and back, and a region of its own
		return 2*cycles + microarch.Region(x.target)
	}
	return cycles + 60*times
}
