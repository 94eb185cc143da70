package sketch

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// algorithms lists the formats that products are computed in, in ascending order of their numbers.
var algorithms = []struct {
	by     searchspace.Algorithm
	format schedule.Format
	level  schedule.Numerics
}{
	{searchspace.Algorithm{Name: "compensated TF32", Number: 3}, schedule.TF32Compensated, schedule.Default},
	{searchspace.Algorithm{Name: "I8", Number: 8}, schedule.I8, schedule.Strict},
	{searchspace.Algorithm{Name: "BF16", Number: 16}, schedule.BF16, schedule.Fast},
	{searchspace.Algorithm{Name: "F16", Number: 17}, schedule.F16, schedule.Strict},
	{searchspace.Algorithm{Name: "TF32", Number: 19}, schedule.TF32, schedule.Fast},
	{searchspace.Algorithm{Name: "warpgroup I8", Number: 40}, schedule.WarpgroupI8, schedule.Strict},
	{searchspace.Algorithm{Name: "warpgroup BF16", Number: 48}, schedule.WarpgroupBF16, schedule.Fast},
	{searchspace.Algorithm{Name: "warpgroup F16", Number: 49}, schedule.WarpgroupF16, schedule.Strict},
	{searchspace.Algorithm{Name: "warpgroup TF32", Number: 51}, schedule.WarpgroupTF32, schedule.Fast},
}

// tensorTile is the sketch of products with matrix instructions of a format. A block computes a tile of the results.
// Each warp holds a part of it in its threads' registers, and operands go through shared memory.
type tensorTile struct {
	*Product
	format schedule.Format
	// joined is the product of joint positions, or nil.
	joined *Product
}

// of returns the sketch with the positions of a point.
func (p *tensorTile) of(q tensorParameters) *tensorTile {
	if q.joint == 0 || p.joined == nil {
		return p
	}
	return &tensorTile{Product: p.joined, format: p.format}
}

// tensorParameters are the sketch's parameters.
type tensorParameters struct {
	// tall and wide are the warps or warpgroups of a block along rows and columns, rows and columns the matrices of
	// each.
	tall, wide, rows, columns int64
	// depth is the number of terms fetched per step, in multiples of an instruction's terms.
	depth int64
	// stages is the depth of the pipeline: the number of steps whose operands are in shared memory or in flight.
	stages int64
	// parts is the number of parts of a sum, computed by blocks of their own.
	parts int64
	// joint is 1 if rows are joint positions: those of an image, across the ends of its rows.
	joint int64
	// scheduler assigns tiles to blocks.
	scheduler TileScheduler
	// tma is 1 if one thread starts TMA copies of operands to shared memory.
	tma int64
}

// NewTensor returns the schedules of a unit with a reduction g in the formats that numerics allow, or nil if no format
// does. Results need not be whole matrices: tiles are padded with zeros, which are not stored.
func NewTensor(s *schedule.Schedule, g *schedule.Stage, u sketch.Unit, gpu *target.GPU, numerics schedule.Numerics) searchspace.Family {
	a, b, ok := schedule.Factors(g.Body)
	if !ok || g.Combiner != expr.Sum {
		return nil
	}
	p := NewPositionProduct(s, g, u, gpu)
	if p == nil || len(p.Operands) != 2 || p.Extents[p.Columns] < nvidia.MatrixColumns/2 || !apart(p) {
		return nil
	}
	k := &searchspace.Sketch[tensorParameters]{Fixed: tensorParameters{tall: 1, wide: 1, rows: 1, columns: 1, depth: 1, stages: 1, parts: 1}}
	smallest := int64(0)
	for _, x := range algorithms {
		level := x.level
		if x.format.Holds(a.DType()) && x.format.Holds(b.DType()) {
			level = schedule.Strict
		}
		t := &tensorTile{Product: p, format: x.format}
		if !x.format.Warpgroup() {
			t.joined = p.Joined()
		}
		if halved(x.format, a.DType()) && halved(x.format, b.DType()) && p.Reduce[p.Step].Extent%schedule.F16.Terms() == 0 {
			continue
		}
		takes := g.Tensor.DType == x.format.Sum() && x.format.Takes(a.DType()) && x.format.Takes(b.DType())
		if !takes || level > numerics || p.Reduce[p.Step].Extent%x.format.Terms() != 0 || x.format.Warpgroup() && !t.fitsWarpgroups() {
			continue
		}
		k.Variants = append(k.Variants, searchspace.Variant[tensorParameters]{By: x.by, Structure: t})
		if smallest == 0 || x.format.Terms() < smallest {
			smallest = x.format.Terms()
		}
	}
	if len(k.Variants) == 0 {
		return nil
	}
	k.Open = searchspace.WithChoices(append(open(p, smallest), tmaKnob(k.Variants)))
	for _, v := range k.Variants {
		for _, q := range v.Structure.(*tensorTile).unit().good {
			k.Good = append(k.Good, searchspace.Candidate[tensorParameters]{By: v.By, Parameters: q})
		}
	}
	return k
}

// unit is the scope of an instruction: its threads, and the rows of its results.
type unit struct {
	threads, rows int64
	good          []tensorParameters
}

// The scopes.
var (
	warps      = unit{32, nvidia.MatrixRows, good}
	warpgroups = unit{128, nvidia.WarpgroupRows, goodOfWarpgroups}
)

func (p *tensorTile) unit() unit {
	if p.format.Warpgroup() {
		return warpgroups
	}
	return warps
}

// streamK has persistent blocks, rasterised tiles, and equal shares of the sums of the last round.
var streamK = TileScheduler{PersistentBlocks: 1, RasterWidth: 8, StreamKRounds: 1}

// good lists tiles for products of many results, of some, and of few, including long sums.
var good = []tensorParameters{
	{tall: 2, wide: 4, rows: 4, columns: 4, depth: 4, stages: 3, parts: 1},
	{tall: 2, wide: 4, rows: 4, columns: 4, depth: 4, stages: 3, parts: 1, scheduler: streamK},
	{tall: 2, wide: 2, rows: 4, columns: 8, depth: 2, stages: 4, parts: 1},
	{tall: 2, wide: 2, rows: 2, columns: 4, depth: 4, stages: 4, parts: 1},
	{tall: 1, wide: 4, rows: 1, columns: 2, depth: 4, stages: 4, parts: 1},
	{tall: 2, wide: 2, rows: 1, columns: 2, depth: 8, stages: 4, parts: 4},
}

// Reconciled implements searchspace.Reconciler. Tiles shrink until no half of them is beyond the results, and steps
// until they leave no remainder.
func (p *tensorTile) Reconciled(q tensorParameters) tensorParameters {
	p = p.of(q)
	shrink := func(done func() bool, fields ...*int64) {
		for _, f := range fields {
			for !done() && *f > 1 {
				*f /= 2
			}
		}
	}
	fits := func(extent, tile int64) bool { return tile < 2*extent }
	shrink(func() bool { return fits(p.Extents[p.Rows], p.box(q).Rows) }, &q.tall, &q.rows)
	shrink(func() bool { return fits(p.Extents[p.Columns], p.box(q).Columns) }, &q.wide, &q.columns)
	shrink(func() bool { return p.Group == 0 || p.Group%(q.columns*nvidia.MatrixColumns) == 0 }, &q.columns)
	shrink(func() bool { return p.WholeGroups(p.box(q).Columns) }, &q.wide)
	if p.Reduce[p.Step].Extent%(q.parts*p.format.Terms()) != 0 {
		q.parts = 1
	}
	shrink(func() bool { return p.Terms(p.box(q))%p.box(q).Depth == 0 }, &q.depth)
	if p.legalForTMA(q) != nil {
		q.tma = 0
	}
	q.scheduler = q.scheduler.Reconciled(p.Product, p.box(q), p.resident(q))
	return q
}

// apart reports whether one operand has the rows and the other the columns. The operand with the rows may differ per
// group of columns if a group is a whole number of matrices.
func apart(p *Product) bool {
	uses := func(o Operand, axis int) bool { return expr.Uses(o.Load, p.Axes[axis]) }
	a, b := p.Operands[0], p.Operands[1]
	if !uses(a, p.Rows) {
		a, b = b, a
	}
	grouped := p.GroupOf(a) > 0 && p.GroupOf(a)%nvidia.MatrixColumns == 0
	return uses(a, p.Rows) && (!uses(a, p.Columns) || grouped) && uses(b, p.Columns) && p.GroupOf(b) == 0 && !uses(b, p.Rows)
}

// open returns the knobs for instructions with at least that many terms.
func open(p *Product, terms int64) []searchspace.Parameter[tensorParameters] {
	type q = tensorParameters
	positions := p.Extents[p.Rows]
	joint := []int64{0}
	if j := p.Joined(); j != nil {
		positions, joint = j.Extents[j.Rows], []int64{0, 1}
	}
	rows, columns := sketch.CeilDiv(positions, nvidia.MatrixRows), sketch.CeilDiv(p.Extents[p.Columns], nvidia.MatrixColumns)
	steps := p.Reduce[p.Step].Extent / terms
	knobs := []searchspace.Parameter[q]{
		sketch.Knob("tall", func(p *q) *int64 { return &p.tall }, sketch.AtMost(rows, 1, 2, 4, 8)...),
		sketch.Knob("wide", func(p *q) *int64 { return &p.wide }, sketch.AtMost(columns, 1, 2, 4, 8)...),
		sketch.Knob("rows", func(p *q) *int64 { return &p.rows }, sketch.AtMost(rows, 1, 2, 4, 8)...),
		sketch.Knob("columns", func(p *q) *int64 { return &p.columns }, sketch.AtMost(columns, 1, 2, 4, 8, 16, 32)...),
		sketch.Knob("depth", func(p *q) *int64 { return &p.depth }, sketch.AtMost(steps, 1, 2, 4, 8)...),
		sketch.Knob("stages", func(p *q) *int64 { return &p.stages }, sketch.AtMost(p.MaxStages(vectorElements), 1, 2, 3, 4, 5, 6, 8)...),
		sketch.Knob("joint", func(p *q) *int64 { return &p.joint }, joint...),
		sketch.Knob("parts", func(p *q) *int64 { return &p.parts }, p.Divisions(4*terms)...),
	}
	return append(knobs, TileSchedulerKnobs(p, Box{Rows: nvidia.MatrixRows, Columns: nvidia.MatrixColumns}, func(p *q) *TileScheduler { return &p.scheduler })...)
}

// vectorElements is the number of neighbours that a thread fetches at once, up to the size of a copy.
const vectorElements = 8

// box returns the box that a block computes.
func (p *tensorTile) box(q tensorParameters) Box {
	return Box{
		Rows: q.tall * q.rows * p.unit().rows, Columns: q.wide * q.columns * nvidia.MatrixColumns,
		Depth: q.depth * p.format.Terms(), Parts: q.parts, Guarded: true,
	}
}

// fetching returns how a block fetches.
func (p *tensorTile) fetching(q tensorParameters) Fetching {
	f := Fetching{Threads: q.tall * q.wide * p.unit().threads, Vector: vectorElements, Stages: q.stages, Skewed: true}
	f.Matrices = p.format.Packed() > 1
	if p.format.Warpgroup() {
		f.Vector, f.Skewed, f.Swizzled, f.TMA = 16/p.Operands[0].Load.DType().Bytes(), false, true, q.tma == 1
	}
	return f
}

// registers returns the number of 32-bit registers for a thread's results and operands.
func (p *tensorTile) registers(q tensorParameters) int64 {
	parts := int64(1)
	switch {
	case p.format == schedule.TF32Compensated:
		parts = 2
	case p.format.Warpgroup():
		parts = 0 // operands stay in shared memory
	}
	return 4*q.rows*q.columns*int64(1+len(p.Unit.Also)) + parts*(4*q.rows+2*q.columns)
}

// Legal implements searchspace.Structure.
func (p *tensorTile) Legal(q tensorParameters) error {
	if q.joint == 1 && p.joined == nil {
		return fmt.Errorf("space: there are no positions to be joined")
	}
	p = p.of(q)
	b := p.box(q)
	warp := q.columns * nvidia.MatrixColumns
	switch {
	case p.Group > 0 && (p.Group%warp != 0 || !p.WholeGroups(b.Columns)):
		return fmt.Errorf("space: %d columns of a warp, %d of a block, are not parts of groups of %d", warp, b.Columns, p.Group)
	case p.Terms(b)%b.Depth != 0:
		return fmt.Errorf("space: steps of %d terms leave a rest", b.Depth)
	case p.fetching(q).Threads > int64(p.GPU.BlockThreads):
		return fmt.Errorf("space: %d threads are more than a block has", p.fetching(q).Threads)
	case p.registers(q) > tensorMaxRegisters:
		return fmt.Errorf("space: a thread keeps %d registers, more than it has", p.registers(q))
	case !p.RegistersSuffice(p.fetching(q).Threads, p.registers(q)):
		return fmt.Errorf("space: %d threads with %d registers are more than a multiprocessor has", p.fetching(q).Threads, p.registers(q))
	case p.SharedBytes(b, p.fetching(q)) > p.GPU.BlockSharedBytes:
		return fmt.Errorf("space: a block takes %d bytes of shared memory of %d", p.SharedBytes(b, p.fetching(q)), p.GPU.BlockSharedBytes)
	}
	if p.format.Warpgroup() {
		if err := p.legalForWarpgroups(q); err != nil {
			return err
		}
	}
	if err := p.legalForTMA(q); err != nil {
		return err
	}
	return q.scheduler.Legal(p.Product, b, p.resident(q))
}

// TensorAlgorithm is a format for factors of a type, and its name.
type TensorAlgorithm struct {
	By     searchspace.Algorithm
	Format schedule.Format
}

// TensorAlgorithms returns the formats of warp instructions that numerics allow, for sums of a type and factors of
// type d.
func TensorAlgorithms(sum, d array.DType, numerics schedule.Numerics) (list []TensorAlgorithm) {
	for _, x := range algorithms {
		level := x.level
		if x.format.Holds(d) {
			level = schedule.Strict
		}
		if x.format <= schedule.I8 && !halved(x.format, d) && sum == x.format.Sum() && x.format.Takes(d) && level <= numerics {
			list = append(list, TensorAlgorithm{x.by, x.format})
		}
	}
	return list
}

// halved reports whether a format takes half as many terms of a type at a time as another does.
func halved(f schedule.Format, d array.DType) bool { return f == schedule.TF32 && f.Holds(d) }
