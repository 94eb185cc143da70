package sketch

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// tileMatrices describes how a sum of products is computed by tile instructions. Tile registers have 16 rows of 64
// bytes: rows of positions are multiplied by the packed weights of 16 channels. The sums of a tile are in tile
// registers.
type tileMatrices struct {
	format schedule.Format
	// extended is set if the terms are not a multiple of an instruction's terms and are padded with zeros.
	extended bool
	// copied is set if there are fewer positions than rows of a tile. They are copied to a buffer with room for the
	// rows that the instructions read beyond them.
	copied bool
	// turned is the operand that the kernel interleaves at run time, if it is not a packable constant.
	turned *turned
}

// turned describes how an operand is interleaved: terms indexes one of its dimensions, with some neighbours
// contiguous, and channels another.
type turned struct{ terms, channels int }

// algorithms lists the tile algorithms by format, in ascending order of their numbers.
var algorithms = []struct {
	by     searchspace.Algorithm
	format schedule.Format
}{{AMXI8, schedule.TileI8}, {AMXBF16, schedule.TileBF16}, {AMXF16, schedule.TileF16}}

// TileMatrices returns the schedules of a reduction that use the target's tile instructions. It returns nil if the
// target lacks them, or if the operands do not match: elements of 8 or 16 bits with contiguous terms, multiplied by a
// constant that can be packed or by an operand that can be interleaved.
func TileMatrices(s *schedule.Schedule, acc *schedule.Stage, u sketch.Unit, t *target.Target) searchspace.Family {
	if acc.Combiner != expr.Sum {
		return nil
	}
	a, b, ok := schedule.Factors(acc.Body)
	if !ok {
		return nil
	}
	for _, k := range algorithms {
		f := k.format
		if microarch.HasTiles(t, a.DType()) && f.Holds(a.DType()) && f.Holds(b.DType()) && acc.Tensor.DType == f.Sum() {
			x := newTile(s, acc, u, t)
			if !x.findMatrices(s, acc, f) {
				return nil
			}
			x.joinRows(s, acc)
			x.fedBy(s, acc, u)
			x.copyData()
			return &searchspace.Sketch[TileParameters]{Open: x.openMatrices(), Fixed: TileParameters{Columns: schedule.TileRows},
				Variants: []searchspace.Variant[TileParameters]{{By: k.by, Structure: x}}, Good: x.matrixSeeds(k.by)}
		}
	}
	return nil
}

// findMatrices determines whether the operands match, and records how they are multiplied.
func (x *Tile) findMatrices(s *schedule.Schedule, acc *schedule.Stage, f schedule.Format) bool {
	if x.vec < 0 || x.col < 0 || x.lanes != schedule.TileColumns || x.group > 0 {
		return false
	}
	loads, last := expr.Loads(acc.Body), acc.Reduce[len(acc.Reduce)-1]
	weights := slices.IndexFunc(loads, func(l *expr.Load) bool { return expr.Uses(l, acc.Axes[x.vec]) })
	if weights < 0 || loads[0].Tensor == loads[1].Tensor {
		return false
	}
	packed := len(x.packs) == 1 && x.packs[0].last >= 0 && loads[weights].Tensor == s.Workload.Constants[x.packs[0].constant]
	t, turns := x.turnedOperand(s, acc, loads[weights])
	if !packed && !turns {
		return false
	}
	data := loads[1-weights]
	if expr.Uses(data, acc.Axes[x.vec]) || !sketch.Adjacent(data, last) {
		return false
	}
	rest := last.Extent % f.Terms()
	if rest != 0 && !slices.Contains(data.Index, expr.Expr(last)) {
		return false
	}
	for _, axis := range []int{x.col, x.row} {
		if axis < 0 {
			continue
		}
		if step, linear := sketch.MemoryStep(data, acc.Axes[axis]); !linear || step <= 0 {
			return false
		}
	}
	x.matrices = &tileMatrices{format: f, extended: rest != 0}
	x.reduce = slices.Clone(x.reduce)
	x.reduce[len(x.reduce)-1] = sketch.CeilDiv(last.Extent, f.Terms()) * f.Terms()
	x.dot = &dotting{instruction: instruction{terms: f.Packed()}, data: 1 - weights, weights: weights}
	x.steps = slices.Clone(x.reduce)
	x.steps[len(x.steps)-1] /= f.Packed()
	x.vectors = sketch.AtMost(sketch.CeilDiv(x.extent(x.vec), x.lanes), 1, 2, 3, 4)
	x.panels, x.mustPack = nil, false
	if !packed {
		x.matrices.turned, x.accesses[weights].Packed = t, true
	}
	return true
}

// turnedOperand returns how to interleave an operand of channels that is not a packed constant. ok is false if the
// operand also depends on positions, or if terms and channels do not index two of its dimensions.
func (x *Tile) turnedOperand(s *schedule.Schedule, acc *schedule.Stage, l *expr.Load) (t *turned, ok bool) {
	t = &turned{slices.Index(l.Index, expr.Expr(acc.Reduce[len(acc.Reduce)-1])), slices.Index(l.Index, expr.Expr(acc.Axes[x.vec]))}
	if len(x.packs) > 0 || t.terms < 0 || t.channels < 0 || s.Producer(l.Tensor) != nil {
		return nil, false
	}
	for _, axis := range []int{x.col, x.row} {
		if axis >= 0 && expr.Uses(l, acc.Axes[axis]) {
			return nil, false
		}
	}
	return t, true
}

// joinRows makes the sketch of joint positions if rows are contiguous, so that the rows of a tile have a constant
// stride.
func (x *Tile) joinRows(s *schedule.Schedule, acc *schedule.Stage) {
	x.joinPositions(acc)
	if x.joined == nil {
		return
	}
	data, axes := expr.Loads(acc.Body)[x.dot.data], x.joined.joint
	behind, _ := sketch.MemoryStep(data, acc.Axes[axes[len(axes)-1]])
	for _, k := range slices.Backward(axes) {
		if step, linear := sketch.MemoryStep(data, acc.Axes[k]); !linear || step != behind {
			x.joined = nil
			return
		}
		behind *= x.extents[k]
	}
}

// copyData records the copies of operands: with zeros after the terms, or of positions that are too few for a tile,
// unless the feed of the reduction already stores them in a buffer.
func (x *Tile) copyData() {
	for _, y := range []*Tile{x, x.joined} {
		if y == nil {
			continue
		}
		own := *y.matrices
		own.copied = y.fed == nil && !own.extended && y.extent(y.col) < schedule.TileRows
		if y.matrices = &own; y.fed == nil && (own.copied || own.extended) {
			y.fed = &y.accesses[y.dot.data]
		}
	}
}

// openMatrices returns the knobs.
func (x *Tile) openMatrices() []searchspace.Parameter[TileParameters] {
	type p = TileParameters
	positions := x.extent(x.col)
	places := []int64{sketch.Alone, sketch.InBlock, sketch.InTile}
	if x.joined != nil {
		positions = max(positions, x.joined.extent(x.joined.col))
	}
	height := max(x.extent(x.row), sketch.CeilDiv(positions, schedule.TileRows))
	open := []searchspace.Parameter[p]{
		sketch.Knob("tv", func(p *p) *int64 { return &p.Vectors }, x.vectors...),
		sketch.Knob("tw", func(p *p) *int64 { return &p.Columns }, append([]int64{schedule.TileRows}, sketch.Below(positions+1, 2*schedule.TileRows, 3*schedule.TileRows, 4*schedule.TileRows)...)...),
		sketch.Knob("th", func(p *p) *int64 { return &p.Rows }, sketch.AtMost(min(4, x.extent(x.row)), 1, 2, 3)...),
		sketch.Knob("hb", func(p *p) *int64 { return &p.RowTiles }, sketch.AtMost(height, 1, 2, 4, 8, 16, 64, 1024)...),
		sketch.Knob("cb", func(p *p) *int64 { return &p.VectorTiles }, sketch.AtMost(x.extent(x.vec), 1, 2, 4, 8, 16, 64)...),
		sketch.Knob("outer", func(p *p) *int64 { return &p.Outer }, 0, 1),
		sketch.Knob("inner", func(p *p) *int64 { return &p.Inner }, 0, 1),
	}
	if x.joined != nil {
		open = append(open, sketch.Knob("joint", func(p *p) *int64 { return &p.Joint }, 0, 1))
	}
	if x.fed != nil || x.joined != nil && x.joined.fed != nil {
		open = append(open, sketch.Knob("feed", func(p *p) *int64 { return &p.Feed }, places...))
	}
	return searchspace.WithChoices(open)
}

// matrixSeeds returns tiles with half as many loads as multiplications, and tiles for few positions or channels.
func (x *Tile) matrixSeeds(by searchspace.Algorithm) (list []searchspace.Candidate[TileParameters]) {
	for _, t := range []accumulators{{1, 32, 2}, {2, 16, 2}, {1, 16, 2}, {1, 16, 4}, {1, 16, 3}, {1, 48, 1}, {1, 16, 1}} {
		for _, p := range []TileParameters{
			{RowTiles: 1024, VectorTiles: 1, Inner: 1, Feed: sketch.Alone},
			{RowTiles: 4, VectorTiles: 64, Feed: sketch.InBlock},
			{RowTiles: 8, VectorTiles: 4, Outer: 1, Inner: 1, Feed: sketch.Alone},
		} {
			p.Rows, p.Columns, p.Vectors = t.rows, t.columns, t.vectors
			list = append(list, searchspace.Candidate[TileParameters]{By: by, Parameters: p})
			p.Rows, p.Joint, p.Feed = 1, 1, sketch.Alone
			list = append(list, searchspace.Candidate[TileParameters]{By: by, Parameters: p})
		}
	}
	return list
}

// legalMatrices checks that sums and operands fit into the tile registers, and rows into the positions.
func (x *Tile) legalMatrices(p TileParameters) error {
	z := x.sizes(p)
	switch {
	case len(x.joint) > 0 && (p.Rows > 1 || x.fed != nil && p.Feed != sketch.Alone):
		return fmt.Errorf("space: joint positions have no rows or rectangles of their own")
	case z.tw > max(schedule.TileRows, x.extent(x.col)) || z.th > x.extent(x.row):
		return fmt.Errorf("space: tiles of %dx%d positions are larger than all", z.th, z.tw)
	}
	return Matrices{Rows: z.th * sketch.CeilDiv(z.tw, schedule.TileRows), Columns: z.tv}.Legal()
}

// matrixCycles returns the cycles of one tile whose sums are tv tiles wide.
func (x *Tile) matrixCycles(tv float64, z tileSizes) float64 {
	m := Matrices{Rows: z.th * sketch.CeilDiv(z.tw, schedule.TileRows), Columns: int64(tv)}
	steps := float64(sketch.Product(x.reduce)) / float64(x.matrices.format.Terms())
	return m.Cycles(steps) + (2.5+float64(len(x.ends)))*tv*float64(z.th*z.tw)
}

// applyCopy copies the reduction's data if necessary, and returns the stages that then feed it. The previous feed is
// computed in the copy.
func (x *Tile) applyCopy(b *sketch.Builder, u sketch.Unit) (feeds []int) {
	feeds = u.Feeds
	through := -1
	if x.matrices.extended {
		copies := sketch.Get(b.S.Extend(u.Acc, x.matrices.format.Terms()))
		for _, f := range u.Feeds {
			b.Do(b.S.Inline(f))
		}
		feeds, through = []int{copies[x.dot.data]}, copies[x.dot.weights]
	}
	if x.matrices.turned != nil {
		x.applyTurning(b, u, through)
	}
	if x.matrices.copied {
		axes := len(expr.Loads(b.S.Stages[u.Acc].Body)[x.dot.data].Tensor.Shape)
		feeds = []int{sketch.Get(b.S.CacheRead(u.Acc, x.dot.data, sketch.Axes(axes)))}
	}
	return feeds
}

// applyTurning interleaves an operand before the tiles are computed, for all channels, with the zeros that the copy
// through appends to its terms; -1 for no copy.
func (x *Tile) applyTurning(b *sketch.Builder, u sketch.Unit, through int) {
	t := x.matrices.turned
	id := sketch.Get(b.S.Interleave(u.Acc, x.dot.weights, t.terms, t.channels, x.matrices.format.Packed()))
	if through >= 0 {
		b.Do(b.S.Inline(through))
	}
	ApplyInterleaved(b, id)
}

// turnCycles returns the cycles of interleaving an operand.
func (x *Tile) turnCycles() float64 {
	t := x.matrices.turned
	if t == nil {
		return 0
	}
	a := &x.accesses[x.dot.weights]
	elements, group := float64(sketch.Product(a.Tensor.Shape)), float64(x.matrices.format.Packed())
	return InterleaveCycles(elements, group, t.terms == len(a.Tensor.Shape)-1) + microarch.Region(x.target)
}

// matrixNest builds the nest of the sums. The terms of an instruction are innermost, except for the positions and
// channels of a tile.
func (x *Tile) matrixNest(b *sketch.Builder, acc int) {
	var outer, inside, reduction []int
	for k := range x.extents {
		if k == x.row || k == x.col || k == x.vec {
			inside = append(inside, k)
		} else {
			outer = append(outer, k)
		}
	}
	for k := range x.reduce {
		reduction = append(reduction, len(x.extents)+k)
	}
	last := len(reduction) - 1
	steps, terms := b.Split(acc, reduction[last], x.matrices.format.Terms(), schedule.Peel)
	reduction[last] = steps
	b.Do(b.S.Reorder(acc, slices.Concat(outer, reduction, []int{terms}, inside)...))
	b.Do(b.S.Tensorize(acc, terms, x.matrices.format))
}
