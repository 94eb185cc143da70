package sketch

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// winograd is the sketch of a convolution by Winograd's algorithm. With blocks, the transformed data and its product
// with the weights are computed per block of tiles, which keeps both in a cache but reads the weights once per block.
// Without blocks, each step covers all tiles, which reads everything once and divides the product among workers by
// weights.
type winograd struct {
	target      *target.Target
	unit        sketch.Unit
	lanes, line int64
	constant    int
	// batch, y, x and c are axes of the convolution.
	batch   []int
	y, x, c int
	// images is the product of the batch axes; height, width, ic and oc are extents.
	images, height, width, ic, oc int64
	// openWidth is set if an execution chooses the width. A block then continues from one row or image into the next.
	openWidth bool
}

// tile is the sketch for one tile size: my x mx outputs.
type tile struct {
	*winograd
	my, mx    int64
	filtering schedule.Filtering
	// pairs is set if factors of the product are rounded to bfloat16 and multiplied in pairs.
	pairs bool
}

// The Winograd algorithms, by rows and columns of outputs per tile. F4x2 reads fewer weights than F4x4 and multiplies
// less than F2x2.
var (
	F2x2 = searchspace.Algorithm{Name: "winograd 2x2", Number: 2}
	F4x4 = searchspace.Algorithm{Name: "winograd 4x4", Number: 4}
	F4x2 = searchspace.Algorithm{Name: "winograd 4x2", Number: 42}
	// F2x2Pairs is F2x2 with a product of factors in bfloat16.
	F2x2Pairs = searchspace.Algorithm{Name: "winograd 2x2 in bf16", Number: 216}
)

// winogradParameters are the sketch's parameters.
type winogradParameters struct {
	// tiles x vectors is the register tile of the product.
	tiles, vectors int64
	// block is the approximate number of tiles per block, 0 for none. columns is the maximum number of register tiles
	// along the channels per chunk of the product.
	block, columns int64
	// unroll is the number of unrolled steps of the reduction.
	unroll int64
	// image selects where the padded activation is computed.
	image int64
	// prefetch is the prefetch distance of weights in bytes.
	prefetch int64
}

// maxGrowth is the maximum growth of rounding errors over direct sums if factors are rounded to bfloat16. F2x2 has
// 1.7 times the error, F4x4 9 times.
const maxGrowth = 2

// NewWinograd returns the schedules of the reduction acc, or nil if the algorithm does not apply. The transforms
// support only a single output. With pairs, factors of its product may be rounded to bfloat16.
func NewWinograd(s *schedule.Schedule, acc *schedule.Stage, u sketch.Unit, t *target.Target, pairs bool) searchspace.Family {
	c, ok := s.Conv(acc.ID)
	if !ok || len(u.Also) > 0 {
		return nil
	}
	bytes := acc.Tensor.DType.Bytes()
	pairs = pairs && acc.Tensor.DType == array.Float32 && c.IC%2 == 0
	x := &winograd{
		target: t, unit: u,
		lanes: max(1, int64(t.CPU.VectorBytes)/bytes), line: max(1, int64(t.CPU.CacheLineBytes)/bytes), constant: c.Constant,
		batch: c.Batch, y: c.Y, x: c.X, c: c.OC, images: 1,
		height: acc.Tensor.Shape[c.Y], width: acc.Tensor.Shape[c.X], ic: c.IC, oc: acc.Tensor.Shape[c.OC],
		openWidth: acc.Axes[c.X].Limit != nil,
	}
	for _, k := range c.Batch {
		x.images *= acc.Tensor.Shape[k]
	}
	k := &searchspace.Sketch[winogradParameters]{Open: x.open()}
	for _, a := range []struct {
		searchspace.Algorithm
		my, mx int64
		pairs  bool
	}{{F2x2, 2, 2, false}, {F4x4, 4, 4, false}, {F4x2, 4, 2, false}, {F2x2Pairs, 2, 2, true}} {
		f, ok := c.Filtering(a.my, a.mx)
		if ok && (!a.pairs || pairs && f.Growth <= maxGrowth) {
			k.Variants = append(k.Variants, searchspace.Variant[winogradParameters]{By: a.Algorithm, Structure: &tile{x, a.my, a.mx, f, a.pairs}})
			k.Good = append(k.Good, x.seeds(a.Algorithm)...)
		}
	}
	if len(k.Variants) == 0 {
		return nil
	}
	return k
}

// winogradSizes are the numbers derived from the parameters.
type winogradSizes struct {
	// tiles x vectors is the register tile.
	tiles, vectors, ku int64
	// vecTiles is the number of register tiles along the channels per chunk of the product.
	vecTiles int64
	// rows x columns tiles form a block; zero without blocks.
	rows, columns int64
	// ty x tx tiles cover an image.
	ty, tx int64
}

func (z winogradSizes) blocked() bool { return z.rows > 0 }

// imageInBlocks reports whether a block can have its part of the padded activation, which is a box then.
func (x *winograd) imageInBlocks(z winogradSizes) bool { return z.blocked() && !x.openWidth }

func (x *tile) sizes(p winogradParameters) winogradSizes {
	z := winogradSizes{ty: sketch.CeilDiv(x.height, x.my), tx: sketch.CeilDiv(x.width, x.mx), ku: max(1, p.unroll)}
	z.vectors = min(max(1, p.vectors), sketch.CeilDiv(x.oc, x.lanes))
	covered := x.images * z.ty * z.tx
	if block := p.block; block > 0 && x.openWidth {
		z.rows, z.columns = 1, sketch.DivisorAtMost(covered, block)
		covered = z.columns
	} else if block >= z.tx {
		z.rows, z.columns = sketch.DivisorAtMost(z.ty, block/z.tx), z.tx
		covered = z.rows * z.columns
	} else if block > 0 {
		z.rows, z.columns = 1, sketch.DivisorAtMost(z.tx, block)
		covered = z.columns
	}
	z.tiles = min(max(1, p.tiles), covered)
	z.vecTiles = sketch.DivisorAtMost(sketch.CeilDiv(x.oc, z.vectors*x.lanes), max(1, p.columns))
	return z
}
