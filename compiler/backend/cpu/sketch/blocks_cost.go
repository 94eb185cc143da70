package sketch

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/machine"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// What a vector of 32 bits asks for, in operations.
const (
	// scaleOps scales a sum of a block and adds it to the others: a cast, the step of the data, the scale.
	scaleOps = 4
	// halfOps is what four terms take where no instruction adds them up.
	halfOps = 3
	// halvesOps takes a vector of bytes apart, castOps makes floats of a vector of codes, pickOps does so by a table.
	halvesOps, castOps, pickOps = 3, 4, 2
	// beside is the part of the work on codes that the units which multiply have. Fitted to Zen 5, which has others
	// for the rest.
	beside = 0.45
	// blocksPieceStart is the cycles that a row of a strip costs, whose results do not follow those of the row before.
	blocksPieceStart = 6
	// blocksFarAhead is how many bytes ahead codes of one row are fetched best, farther the part of the time that is
	// left then. Measured on Zen 5: 8 KiB take 0.83 of the time with 2 KiB, 4 KiB 0.9, 16 KiB as much as 8.
	blocksFarAhead, farther = 8192, 0.8
	// quantiseOps is what an element of data takes until it has 8 bits, in all passes over it.
	quantiseOps = 12
)

// Cost implements space.Structure: the cycles of all tiles, those that wait for codes and scales, which come from
// memory, those that quantise data, and what is lost because the workers' shares differ.
func (x *blocksVariant) Cost(p blocksParameters) float64 {
	t, z := x.target, x.sizes(p)
	rowTiles := float64(sketch.CeilDiv(x.rows(), z.rows))
	strips := float64(sketch.CeilDiv(x.extents[x.column], z.vectors*x.lanes))
	outer := float64(array.Elements(x.extents)) / float64(x.extents[x.column]*x.rows())
	groups := float64(x.product.Inner / z.terms)
	arithmetic := outer * rowTiles * strips * (groups*x.groupCycles(z) + 2.5*float64(z.rows*z.vectors) + 12)
	work := max(arithmetic, x.waiting(z)) + machine.Hidden*min(arithmetic, x.waiting(z))
	if x.form == schedule.BlockIntegers {
		data := outer * float64(x.rows()*x.product.Inner)
		work += data / float64(x.lanes) * quantiseOps * machine.Wide(t)
	}
	if x.row >= 0 {
		work += blocksPieceStart * outer * float64(x.rows()) * strips
	}
	chunks := outer * strips * math.Ceil(rowTiles/float64(z.rowTiles))
	workers := float64(machine.Workers(t))
	work += machine.ChunkStart * chunks
	return work*math.Ceil(chunks/workers)/chunks + machine.Region(t)
}

// groupCycles is the cycles of the sums of a group in a tile, and of scaling them.
func (x *blocksVariant) groupCycles(z blocksSizes) float64 {
	sums, terms := float64(z.rows*z.vectors), float64(z.terms)
	multiplied := sums * terms
	codes := float64(z.vectors) * terms * x.castOps()
	if x.form == schedule.BlockIntegers {
		multiplied /= 4
		if x.target.CPU.Arch == target.X86 && !x.multipliesBytes() {
			multiplied *= halfOps
		}
		codes = 0
		if x.product.Nibbles {
			codes = float64(z.vectors*z.steps) * halvesOps
		}
	}
	loads := machine.LoadSlot * (multiplied/float64(z.vectors) + float64(z.vectors*z.steps))
	operations := multiplied + beside*codes + scaleOps*sums
	busy, loops := operations/machine.Arithmetic, float64(z.steps/z.unroll)*0.5+1
	return max(busy, loads, (operations+loads)/machine.Issue) + machine.Hidden*min(busy, loads) + loops
}

// castOps is what it takes to make floats of a vector of codes.
func (x *blocksVariant) castOps() float64 {
	if x.product.Nibbles && x.target.CPU.Has("avx512f") {
		return pickOps
	}
	return castOps
}

// waiting is the cycles until all codes and scales have come from memory.
func (x *blocksVariant) waiting(z blocksSizes) float64 {
	codes := float64(x.product.Inner * x.extents[x.column])
	bytes := 4 * codes / float64(x.product.Block)
	if x.product.Nibbles {
		codes /= 2
	}
	lines := (codes + bytes) / float64(machine.Line(x.target))
	switch {
	case z.prefetch >= blocksFarAhead && z.vectors > 1:
		return lines * machine.PrefetchedLine(x.target) * farther
	case z.prefetch > 0 && z.rows*z.vectors > 4:
		return lines * machine.PrefetchedLine(x.target)
	}
	return lines * machine.ColdLine(x.target)
}
