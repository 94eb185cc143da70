package space

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

var inf = math.Inf(1)

// maxUnrolled bounds the multiplications written out in a loop's body. Unrolling gains nothing beyond a few dozen, and each
// costs a compiler about 0.2 ms.
const maxUnrolled = 256

// tile is the sketch of a reduction: an output tile of th x tw positions x tv vectors is kept in registers while the
// reduction runs, and the tiles are visited block by block.
//
//	parallel over (outer axes, row blocks, vector blocks), in either order
//	  tiles of the block, in one of two orders
//	    [padding or another feed, where the knob says so]
//	    acc tile = 0
//	    for reduction (blocked, the innermost iterations unrolled)
//	      acc tile += ...                                   th x tw x tv unrolled, vectorized
//	    out tile = the map that ends the unit
type tile struct {
	lanes int64
	// vec, col and row are axes: the vectorized one, and the last two others that are longer than one; -1 for none.
	vec, col, row int
	extents       []int64
	reduce        []int64
	packs         []packable
	// broadcasts is set when vector instructions can read one operand as a broadcast from memory.
	broadcasts bool
	// streams counts the tensors that are read once for each element of the tile and reduction step.
	loadsVector, loadsScalar bool
}

// packable is a constant that the reduction reads along the vectorized axis.
type packable struct {
	constant int
	// dim is the dimension indexed by the vectorized axis, last the one indexed by the innermost reduction axis or -1.
	dim, last int
	rank      int
}

func newTile(s *schedule.Schedule, acc, out *schedule.Stage, t *target.Target) *tile {
	x := &tile{vec: -1, col: -1, row: -1, extents: acc.Tensor.Shape, lanes: 1, broadcasts: t.Has("avx512f")}
	for _, r := range acc.Reduce {
		x.reduce = append(x.reduce, r.Extent)
	}
	for k := len(x.extents) - 1; k >= 0; k-- {
		switch {
		case x.extents[k] == 1:
		case x.vec < 0:
			x.vec = k
		case x.col < 0:
			x.col = k
		case x.row < 0:
			x.row = k
		}
	}
	if x.vec < 0 {
		return x
	}
	if d := acc.Tensor.DType.Bytes(); contiguous(acc, x.vec) {
		x.lanes = max(1, int64(t.VectorBytes)/d)
	}
	x.findPacks(s, acc)
	for _, l := range expr.Loads(acc.Body) {
		if slices.ContainsFunc(l.Index, func(e expr.Expr) bool { return expr.Uses(e, acc.Axes[x.vec]) }) {
			x.loadsVector = true
		} else {
			x.loadsScalar = true
		}
	}
	return x
}

// contiguous reports whether every load but those of constants moves by zero or one element along an axis.
func contiguous(g *schedule.Stage, axis int) bool {
	for _, l := range expr.Loads(g.Body) {
		if l.Tensor.Role == expr.Constant {
			continue
		}
		flat, strides := expr.I(0), l.Tensor.MemoryStrides()
		for k, x := range l.Index {
			flat = expr.AddE(flat, expr.MulE(x, expr.I(strides[k])))
		}
		coef, linear := expr.Linearize(flat).Coef(g.Axes[axis])
		if !linear || coef != 0 && coef != 1 {
			return false
		}
	}
	return true
}

func (x *tile) findPacks(s *schedule.Schedule, acc *schedule.Stage) {
	last := acc.Reduce[len(acc.Reduce)-1]
	for _, l := range expr.Loads(acc.Body) {
		c := slices.Index(s.Workload.Constants, l.Tensor)
		if c < 0 || slices.ContainsFunc(x.packs, func(p packable) bool { return p.constant == c }) {
			continue
		}
		p := packable{constant: c, dim: -1, last: -1, rank: len(l.Index)}
		reduces := false
		for k, e := range l.Index {
			switch {
			case e == expr.Expr(acc.Axes[x.vec]):
				p.dim = k
			case e == expr.Expr(last):
				p.last = k
			}
			reduces = reduces || usesAny(e, acc.Reduce)
		}
		if p.dim >= 0 && reduces {
			x.packs = append(x.packs, p)
		}
	}
}

func (x *tile) knobs(t *target.Target, fed bool) []Knob {
	knobs := []Knob{
		{"tv", atMost(ceilDiv(x.extent(x.vec), x.lanes), 1, 2, 3, 4, 6, 8)},
		{"tw", atMost(x.extent(x.col), 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28)},
		{"th", atMost(x.extent(x.row), 1, 2, 3, 4, 7, 8)},
		{"hb", atMost(max(x.extent(x.row), x.extent(x.col)), 1, 2, 4, 7, 8, 14, 16, 28, 56, 112, 1024)},
		{"cb", atMost(x.extent(x.vec), 1, 2, 4, 8, 16, 64)},
		{"outer", []int64{0, 1}},
		{"inner", []int64{0, 1}},
		{"ku", atMost(product(x.reduce), 1, 2, 4, 8, 16, 32)},
	}
	if len(x.reduce) > 1 {
		knobs = append(knobs, Knob{"kb", append([]int64{0}, below(x.reduce[len(x.reduce)-1], 16, 32, 64, 128, 256)...)})
	}
	if len(x.packs) > 0 {
		knobs = append(knobs, Knob{"pf", []int64{0, 512, 1024, 2048, 4096}})
	}
	if fed {
		knobs = append(knobs, Knob{"feed", []int64{feedInline, feedRoot, feedBlock, feedTile}})
	}
	return slices.DeleteFunc(knobs, func(k Knob) bool { return len(k.Values) < 2 })
}

// Where a stage that feeds the reduction is computed.
const (
	feedInline = iota
	feedRoot
	feedBlock
	feedTile
)

func (x *tile) extent(axis int) int64 {
	if axis < 0 {
		return 1
	}
	return x.extents[axis]
}

// sizes are the numbers that follow from the settings.
type sizes struct {
	tv, tw, th int64
	// rowTiles and vecTiles are the tiles of one block.
	rowTiles, vecTiles int64
	ku, kb             int64
}

func (x *tile) sizes(set settings) sizes {
	z := sizes{tv: max(1, set["tv"]), tw: max(1, set["tw"]), th: max(1, set["th"]), ku: max(1, set["ku"]), kb: set["kb"]}
	blocked := ceilDiv(x.extent(x.row), z.th)
	if x.row < 0 {
		blocked = ceilDiv(x.extent(x.col), z.tw)
	}
	z.rowTiles = divisorAtMost(blocked, max(1, set["hb"]))
	z.vecTiles = divisorAtMost(ceilDiv(x.extent(x.vec), z.tv*x.lanes), max(1, set["cb"]))
	return z
}

// legal keeps the accumulators, one vector per column of the tile and the operand in flight within the register file, and the
// unrolled code within what an instruction cache and a compiler take well.
func (x *tile) legal(t *target.Target, set settings) error {
	z := x.sizes(set)
	acc := z.tv * z.tw * z.th
	need := acc + z.tv
	if !x.broadcasts {
		need++
	}
	if regs := int64(t.VectorRegisters); need > regs {
		return fmt.Errorf("space: tile %dx%dx%d needs %d vector registers of %d", z.th, z.tw, z.tv, need, regs)
	}
	if acc*z.ku > maxUnrolled {
		return fmt.Errorf("space: tile %dx%dx%d unrolled %d times is too much code", z.th, z.tw, z.tv, z.ku)
	}
	return nil
}

// cost estimates cycles on one core: per tile and reduction step the larger of arithmetic, loads and the latency of dependent
// additions, with a part of the smaller that does not overlap; per tile a start and an end; whole tiles where the shape does not divide; and the imbalance between workers.
func (x *tile) cost(t *target.Target, set settings, fed bool) float64 {
	z := x.sizes(set)
	acc := float64(z.tv * z.tw * z.th)
	loads := float64(z.tv)
	if x.loadsScalar {
		loads += float64(z.tw * z.th)
	} else {
		loads += acc
	}
	step := max(acc/2, loads/2, 4) + 0.15*min(acc/2, loads/2) + 1/float64(z.ku)
	vectors := float64(ceilDiv(x.extent(x.vec), x.lanes))
	tiles := float64(ceilDiv(x.extent(x.col), z.tw)*ceilDiv(x.extent(x.row), z.th)) * vectors / float64(z.tv)
	for k, e := range x.extents {
		if k != x.vec && k != x.col && k != x.row {
			tiles *= float64(e)
		}
	}
	steps := float64(product(x.reduce))
	code := acc * float64(z.ku)
	cycles := tiles * (steps*step + 3*acc + 10) * (1 + max(0, code-300)/1000)
	cycles += x.traffic(t, z, set, tiles, steps)
	chunks := float64(x.chunks(z))
	workers := float64(max(1, t.Threads))
	cycles *= math.Ceil(chunks/workers) * workers / chunks / workers
	if fed {
		cycles *= x.feedCost(set)
	}
	return cycles
}

// coldLine is about how many cycles a line takes from memory in a stream that the processor follows by itself.
const coldLine = 14

// traffic estimates the cycles lost to packed constants: all of them come from memory once, sooner when prefetched, and those
// of a block that do not stay in the first-level cache are read again for each tile row.
func (x *tile) traffic(t *target.Target, z sizes, set settings, tiles, steps float64) float64 {
	if !x.loadsVector || len(x.packs) == 0 {
		return 0
	}
	weights := steps * float64(z.tv) * float64(t.VectorBytes)
	line := float64(max(1, t.CacheLineBytes))
	first := steps * float64(x.extent(x.vec)) * float64(t.VectorBytes) / float64(x.lanes) / line * coldLine
	if set["pf"] > 0 {
		first *= 0.5
	}
	lines := tiles * weights / line
	block := weights
	if set["inner"] == 0 {
		block *= float64(z.vecTiles)
	}
	switch {
	case block <= 0.7*float64(t.L1DataBytes):
		return first
	case block <= 0.7*float64(t.L2Bytes):
		return first + 0.6*lines
	default:
		return first + 2.5*lines
	}
}

func (x *tile) chunks(z sizes) int64 {
	blocked, col := ceilDiv(x.extent(x.row), z.th), ceilDiv(x.extent(x.col), z.tw)
	if x.row < 0 {
		blocked = col
	}
	n := blocked / z.rowTiles * (ceilDiv(x.extent(x.vec), z.tv*x.lanes) / z.vecTiles)
	for k, e := range x.extents {
		if k != x.vec && k != x.col && k != x.row {
			n *= e
		}
	}
	return max(1, n)
}

func (x *tile) feedCost(set settings) float64 {
	switch set["feed"] {
	case feedInline:
		return 2
	case feedRoot:
		return 1.05
	case feedBlock:
		return 1.03
	default:
		return 1.3
	}
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

func product(xs []int64) int64 {
	n := int64(1)
	for _, x := range xs {
		n *= x
	}
	return n
}

// atMost are the values up to a limit, with the limit itself in place of the first one above it.
func atMost(limit int64, values ...int64) []int64 {
	var list []int64
	for _, v := range values {
		if v >= limit {
			return append(list, limit)
		}
		list = append(list, v)
	}
	return list
}

// below are the values under a limit.
func below(limit int64, values ...int64) []int64 {
	return slices.DeleteFunc(values, func(v int64) bool { return v >= limit })
}

// divisorAtMost is the largest divisor of n that is not above limit.
func divisorAtMost(n, limit int64) int64 {
	for d := min(n, limit); d > 1; d-- {
		if n%d == 0 {
			return d
		}
	}
	return 1
}
