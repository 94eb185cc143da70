package sketch

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Algorithms for products by blocks, with data in float32 or quantised to 8 bits.
var (
	BlockFloats = searchspace.Algorithm{Name: "by blocks", Number: 5}
	Integers    = searchspace.Algorithm{Name: "by blocks in INT8", Number: 58}
)

// blocks is the sketch of a product with block-quantised weights. Codes stay packed until they are in registers. A
// tile of rows x vectors of columns is summed over the blocks. The sums of a block have registers of their own, which
// are scaled and accumulated once at its end.
//
//	[data in 8 bits, with a step for each group of neighbours]         where data is quantised
//	parallel over (outer axes, strips of columns, blocks of rows)
//	  for tiles of rows
//	    acc tile = 0
//	    for blocks
//	      sum tile = 0
//	      for steps in the block
//	        [halves of bytes taken apart]
//	        sum tile += ...                               rows x vectors unrolled, vectorized
//	      acc tile += sum tile, scaled
//	    out tile = the map that ends the unit
type blocks struct {
	target  *target.Target
	unit    sketch.Unit
	product schedule.BlockProduct
	// lanes is the number of lanes of a vector of 32 bits.
	lanes   int64
	extents []int64
	// row is the axis of a tile's rows, or -1 for a single row; column is the last axis.
	row, column int
	results     Streaming
}

// blocksVariant is one form of the sketch.
type blocksVariant struct {
	*blocks
	form schedule.BlockForm
}

// blocksParameters are the sketch's parameters.
type blocksParameters struct {
	// rows x vectors is the register tile.
	rows, vectors int64
	// rowTiles is the maximum number of tiles per chunk.
	rowTiles int64
	// unroll is the number of unrolled steps.
	unroll int64
	// prefetch is the prefetch distance of codes in bytes.
	prefetch int64
}

// NewBlocks returns the schedules of the reduction acc, in integers only if numerics allow them. It returns nil if
// acc is not a product with block-quantised weights.
func NewBlocks(s *schedule.Schedule, acc *schedule.Stage, u sketch.Unit, t *target.Target, numerics schedule.Numerics) searchspace.Family {
	p, ok := s.BlockProduct(acc.ID)
	last := len(acc.Axes) - 1
	if !ok || p.Column != last || acc.Axes[last].Extent < 2 || t.CPU.VectorBytes < 16 {
		return nil
	}
	x := &blocks{target: t, unit: u, product: p, lanes: int64(t.CPU.VectorBytes) / 4, extents: acc.Tensor.Shape, row: sketch.LastLong(acc.Tensor.Shape[:last]), column: last,
		results: NewStreaming(s, s.Stages[u.Out])}
	var variants []searchspace.Variant[blocksParameters]
	if !p.Nibbles || p.Block%x.codesStep() == 0 { // blocks are whole words of half bytes
		variants = append(variants, searchspace.Variant[blocksParameters]{By: BlockFloats, Structure: &blocksVariant{x, schedule.BlockFloats}})
	}
	if numerics >= schedule.Fast && x.hasIntegers() {
		variants = append(variants, searchspace.Variant[blocksParameters]{By: Integers, Structure: &blocksVariant{x, schedule.BlockIntegers}})
	}
	if len(variants) == 0 {
		return nil
	}
	return &searchspace.Sketch[blocksParameters]{Open: x.open(), Variants: variants, Good: x.seeds(variants)}
}

// codesStep returns how many codes of a column are unpacked at once.
func (x *blocks) codesStep() int64 {
	if x.product.Nibbles {
		return 8
	}
	return 4
}

// hasIntegers reports whether data can be quantised, and the machine multiplies signed bytes by unsigned bytes or by
// half bytes. Half bytes fit into signed bytes, and sums of two of their products fit into 16 bits.
func (x *blocks) hasIntegers() bool {
	if x.product.Group == 0 {
		return false
	}
	return x.multipliesBytes() || x.product.Nibbles && x.multipliesHalves()
}

func (x *blocks) multipliesBytes() bool {
	c := x.target.CPU
	return c.Has("avxvnni") || c.Has("avx512vnni") && c.Has("avx512vl") || c.Arch == target.ARM && c.Has("i8mm")
}

func (x *blocks) multipliesHalves() bool {
	c := x.target.CPU
	return microarch.HasDots(x.target) || c.Arch == target.X86 && (c.VectorBytes <= 32 && c.Has("avx2") || c.Has("avx512bw"))
}

// open returns the knobs.
func (x *blocks) open() []searchspace.Parameter[blocksParameters] {
	type p = blocksParameters
	vectors := sketch.CeilDiv(x.extents[x.column], x.lanes)
	return searchspace.WithChoices([]searchspace.Parameter[p]{
		sketch.Knob("bt", func(p *p) *int64 { return &p.rows }, sketch.AtMost(x.rows(), 1, 2, 3, 4, 5, 6, 8)...),
		sketch.Knob("bv", func(p *p) *int64 { return &p.vectors }, sketch.AtMost(vectors, 1, 2, 3, 4, 6)...),
		sketch.Knob("bb", func(p *p) *int64 { return &p.rowTiles }, sketch.AtMost(x.rows(), 1, 4, 16, 1024)...),
		sketch.Unrolling(sketch.Knob("bku", func(p *p) *int64 { return &p.unroll }, 1, 2, 4)),
		sketch.Knob("bpf", func(p *p) *int64 { return &p.prefetch }, 0, 1024, 2048, 4096, 8192, 16384),
	})
}

// seeds returns register tiles that are known to be good.
func (x *blocks) seeds(variants []searchspace.Variant[blocksParameters]) (list []searchspace.Candidate[blocksParameters]) {
	for _, v := range variants {
		for _, tile := range [][2]int64{{1, 4}, {1, 6}, {1, 2}, {4, 2}, {4, 3}, {2, 4}, {2, 2}} {
			for _, ahead := range []int64{0, 2048, blocksFarAhead} {
				p := blocksParameters{rows: tile[0], vectors: tile[1], rowTiles: 1024, unroll: 4, prefetch: ahead}
				list = append(list, searchspace.Candidate[blocksParameters]{By: v.By, Parameters: p})
			}
		}
	}
	return list
}

// rows returns the number of rows that tiles divide.
func (x *blocks) rows() int64 {
	if x.row < 0 {
		return 1
	}
	return x.extents[x.row]
}

// blocksSizes are the numbers derived from the parameters.
type blocksSizes struct {
	rows, vectors, rowTiles, unroll, prefetch int64
	// terms is the number of terms of a sum in registers, steps the number of steps that accumulate them.
	terms, steps int64
}

func (x *blocksVariant) sizes(p blocksParameters) blocksSizes {
	z := blocksSizes{rows: min(max(1, p.rows), x.rows()), vectors: max(1, p.vectors), prefetch: p.prefetch, terms: x.product.Block}
	z.vectors = min(z.vectors, sketch.CeilDiv(x.extents[x.column], x.lanes))
	z.rowTiles = sketch.DivisorAtMost(sketch.CeilDiv(x.rows(), z.rows), max(1, p.rowTiles))
	if x.form == schedule.BlockIntegers {
		z.terms = x.product.Group
	}
	z.steps = z.terms / x.codesStep()
	if !x.product.Nibbles && x.form == schedule.BlockFloats {
		z.steps = z.terms
	}
	z.unroll = sketch.DivisorAtMost(z.steps, max(1, p.unroll))
	return z
}

// Legal implements searchspace.Structure. Both tiles of sums and the codes of a step must fit into registers.
func (x *blocksVariant) Legal(p blocksParameters) error {
	z := x.sizes(p)
	need := 2*z.rows*z.vectors + z.vectors + 1
	if registers := int64(x.target.CPU.VectorRegisters); need > registers {
		return fmt.Errorf("space: sums of %dx%d vectors, those of a block, and codes need %d vector registers of %d", z.rows, z.vectors, need, registers)
	}
	tile := RegisterTile{Rows: z.rows, Vectors: z.vectors, Unroll: z.unroll, Whole: z.unroll == z.steps}
	return tile.Legal(x.target)
}
