package sketch

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Costs of a 32-bit vector, in operations.
const (
	// scaleOps scales the sum of a block and accumulates it: a cast, the data's step, the scale.
	scaleOps = 4
	// halfOps is the cost of four terms without a dot product instruction.
	halfOps = 3
	// halvesOps unpacks a vector of bytes, castOps converts a vector of codes to floats, pickOps does so with a table.
	halvesOps, castOps, pickOps = 3, 4, 2
	// beside is the fraction of the work on codes that the multiply units perform. Fitted to Zen 5, which has other
	// units for the rest.
	beside = 0.45
	// blocksPieceStart is the cycles of starting a row of a strip, whose results do not follow those of the previous
	// row.
	blocksPieceStart = 6
	// blocksFarAhead is the best prefetch distance for codes of one row in bytes, farther the fraction of the time
	// that remains then. Measured on Zen 5: 8 KiB take 0.83 of the time with 2 KiB, 4 KiB 0.9, and 16 KiB the same as
	// 8.
	blocksFarAhead, farther = 8192, 0.8
	// quantiseOps is the cost of quantising an element of data to 8 bits, in all passes over it.
	quantiseOps = 12
)

// Cost implements searchspace.Structure. It adds the cycles of all tiles, of waiting for codes and scales from memory,
// of quantising data, and of the imbalance of workers.
func (x *blocksVariant) Cost(p blocksParameters) float64 {
	t, z := x.target, x.sizes(p)
	rowTiles := float64(sketch.CeilDiv(x.rows(), z.rows))
	strips := float64(sketch.CeilDiv(x.extents[x.column], z.vectors*x.lanes))
	outer := float64(array.Elements(x.extents)) / float64(x.extents[x.column]*x.rows())
	groups := float64(x.product.Inner / z.terms)
	arithmetic := outer * rowTiles * strips * (groups*x.groupCycles(z) + 2.5*float64(z.rows*z.vectors) + 12)
	work := microarch.Overlap(arithmetic, x.waiting(z))
	if x.form == schedule.BlockIntegers {
		data := outer * float64(x.rows()*x.product.Inner)
		work += data / float64(x.lanes) * quantiseOps * microarch.Wide(t)
	}
	if x.row >= 0 {
		work += blocksPieceStart * outer * float64(x.rows()) * strips
	}
	chunks := outer * strips * math.Ceil(rowTiles/float64(z.rowTiles))
	return (work+microarch.ChunkStart*chunks)*microarch.Share(t, chunks) + microarch.Region(t)
}

// groupCycles returns the cycles of computing and scaling the sums of a group in a tile.
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
	loads := microarch.LoadSlot * (multiplied/float64(z.vectors) + float64(z.vectors*z.steps))
	operations := multiplied + beside*codes + scaleOps*sums
	busy, loops := operations/microarch.Arithmetic, float64(z.steps/z.unroll)*0.5+1
	return microarch.Overlap(busy, loads, (operations+loads)/microarch.Issue) + loops
}

// castOps returns the cost of converting a vector of codes to floats.
func (x *blocksVariant) castOps() float64 {
	if x.product.Nibbles && x.target.CPU.Has("avx512f") {
		return pickOps
	}
	return castOps
}

// waiting returns the cycles until all codes and scales have arrived from memory.
func (x *blocksVariant) waiting(z blocksSizes) float64 {
	codes := float64(x.product.Inner * x.extents[x.column])
	bytes := 4 * codes / float64(x.product.Block)
	if x.product.Nibbles {
		codes /= 2
	}
	lines := (codes + bytes) / float64(microarch.Line(x.target))
	switch {
	case z.prefetch >= blocksFarAhead && z.vectors > 1:
		return lines * microarch.PrefetchedLine(x.target) * farther
	case z.prefetch > 0 && z.rows*z.vectors > 4:
		return lines * microarch.PrefetchedLine(x.target)
	}
	return lines * microarch.ColdLine(x.target)
}
