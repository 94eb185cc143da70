package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Product is a reduction whose results share operands. Columns is the last axis of the results longer than one, and
// Rows the longest one before it. Both are tiled; the other axes belong to the blocks. Operands that a tile reuses go
// through shared memory.
type Product struct {
	Unit    sketch.Unit
	GPU     *target.GPU
	Extents []int64
	// Rows and Columns are indices of the results' axes.
	Rows, Columns int
	// Joint is set if the rows are all positions of two axes, Rows and the one before it: tiles continue across the
	// ends of an image's rows.
	Joint bool
	// Group is the number of adjacent columns that share elements of an operand, like the channels of a convolution's
	// group; 0 without groups.
	Group int64
	// Step is the index of the divided reduction axis.
	Step         int
	Axes, Reduce []*expr.Var
	// Operands holds the tensors that a tile reuses.
	Operands []Operand
	// Bytes is the size of a result.
	Bytes int64
}

// Operand is a tensor that the reduction reads.
type Operand struct {
	Load *expr.Load
	// feed is the stage that computes it if only the reduction reads that stage; -1 otherwise.
	feed int
	// copied is set if its elements are those of a tensor or zero, given if it is an argument.
	copied, given bool
}

// NewProduct returns the product of a unit with a reduction g, or nil if no operand is shared by several results.
func NewProduct(s *schedule.Schedule, g *schedule.Stage, u sketch.Unit, gpu *target.GPU) *Product {
	return along(s, g, u, gpu, func(p *Product) int { return p.Rows })
}

// NewPositionProduct returns the product whose rows are the positions of an image if there are at least as many of
// them as images. Otherwise it returns the same as NewProduct. Windows of neighbouring positions overlap, those of
// images do not.
func NewPositionProduct(s *schedule.Schedule, g *schedule.Stage, u sketch.Unit, gpu *target.GPU) *Product {
	return along(s, g, u, gpu, func(p *Product) int {
		last := p.Columns - 1
		for last > p.Rows && p.Extents[last] < 2 {
			last--
		}
		if last <= p.Rows || last < 1 || p.Extents[last]*p.Extents[last-1] < p.Extents[p.Rows] {
			return p.Rows
		}
		for _, l := range expr.Loads(g.Body) {
			if expr.Uses(l, p.Axes[last]) != expr.Uses(l, p.Axes[last-1]) {
				return p.Rows
			}
		}
		return last
	})
}

// along returns a product whose rows lie along an axis chosen by a function of the longest one.
func along(s *schedule.Schedule, g *schedule.Stage, u sketch.Unit, gpu *target.GPU, choose func(*Product) int) *Product {
	if g.Combiner == expr.None || len(g.Axes) < 2 || len(g.Reduce) == 0 {
		return nil
	}
	p := &Product{Unit: u, GPU: gpu, Extents: g.Tensor.Shape, Rows: -1, Columns: sketch.LastLong(g.Tensor.Shape), Reduce: g.Reduce, Axes: g.Axes, Bytes: g.Tensor.DType.Bytes()}
	for k := range max(p.Columns, 0) {
		if p.Extents[k] > 1 && (p.Rows < 0 || p.Extents[k] >= p.Extents[p.Rows]) {
			p.Rows = k
		}
	}
	if p.Rows < 0 {
		return nil
	}
	p.Rows = choose(p)
	for k, r := range g.Reduce {
		if r.Extent >= g.Reduce[p.Step].Extent {
			p.Step = k
		}
	}
	if !p.findOperands(s, g) {
		return nil
	}
	for _, o := range p.Operands {
		p.Group = max(p.Group, p.GroupOf(o))
	}
	return p
}

// findOperands finds the operands that a tile shares and reports whether there are any. A tensor with two kinds of
// reads is read in place, and so is a scalar shared by all results.
func (p *Product) findOperands(s *schedule.Schedule, g *schedule.Stage) bool {
	reads := map[*expr.Tensor]int{}
	for _, l := range expr.Loads(g.Body) {
		reads[l.Tensor]++
	}
	for _, l := range expr.Loads(g.Body) {
		if len(l.Index) > 0 && reads[l.Tensor] == 1 && p.shared(l) && boxed(l) {
			p.Operands = append(p.Operands, p.newOperand(s, l))
		}
	}
	return len(p.Operands) > 0
}

func (p *Product) newOperand(s *schedule.Schedule, l *expr.Load) Operand {
	f := s.Producer(l.Tensor)
	o := Operand{Load: l, feed: -1, copied: true, given: f == nil}
	if f != nil && slices.Contains(p.Unit.Feeds, f.ID) {
		_, _, whole := f.Copy()
		o.feed, o.copied = f.ID, whole
	}
	return o
}

// shared reports whether several results of a tile read the same elements.
func (p *Product) shared(l *expr.Load) bool {
	for _, axis := range []int{p.Rows, p.Columns} {
		used := false
		for _, x := range l.Index {
			used = used || expr.Uses(x, p.Axes[axis])
			if expr.Uses(x, p.Axes[axis]) && sketch.UsesAny(x, p.Reduce) {
				return true // overlapping windows
			}
		}
		if !used {
			return true
		}
	}
	return false
}

// Reads reports whether an operand's elements depend on an axis of the results.
func (p *Product) Reads(o Operand, axis int) bool { return expr.Uses(o.Load, p.Axes[axis]) }

// boxed reports whether the elements that a tile reads form a box, so that their size is known.
func boxed(l *expr.Load) bool {
	for _, x := range l.Index {
		for _, t := range expr.Linearize(x).Terms {
			_, plain := t.Atom.(*expr.Var)
			if _, _, ok := divided(t.Atom); !plain && !ok {
				return false
			}
		}
	}
	return true
}

// MaxStages returns the maximum depth of the pipeline: one if an operand is not a plain copy, if its elements are
// too small for asynchronous copies, or if the GPU lacks them.
func (p *Product) MaxStages(vector int64) int64 {
	if !p.GPU.HasWarps() {
		return 1
	}
	for _, o := range p.Operands {
		if !o.copied || o.Load.Tensor.DType.Bytes()*vector < 4 {
			return 1
		}
	}
	return 8
}

// OwnRegisters is the number of a thread's registers beside results and operands: addresses and counters.
const OwnRegisters = 40

// RegistersSuffice reports whether a multiprocessor has the registers for a block of threads.
func (p *Product) RegistersSuffice(threads, registers int64) bool {
	return threads*(registers+OwnRegisters) <= int64(p.GPU.MultiprocessorRegisters)
}

// Box holds the rows and columns of a block's results, and the number of terms of the divided axis that are fetched
// at a time. Parts is the number of split-K parts of each sum, in blocks of their own; 0 or 1 for none. Guarded boxes
// are whole even beyond the ends of rows and columns.
type Box struct {
	Rows, Columns, Depth, Parts int64
	Guarded                     bool
}

// within returns how many values of an axis a box takes.
func (b Box) within(axis, box int64) int64 {
	if b.Guarded {
		return box
	}
	return min(axis, box)
}

// ranges returns how many values each axis takes while a block computes one step.
func (p *Product) ranges(b Box) map[*expr.Var]int64 {
	r := map[*expr.Var]int64{}
	for k, v := range p.Axes {
		switch {
		case p.Joint && k == p.Rows:
			r[v] = v.Extent
			continue
		case p.Joint && k == p.Rows-1:
			r[v] = (b.Rows-1)/p.Axes[p.Rows].Extent + 2
			continue
		}
		switch k {
		case p.Rows:
			r[v] = b.within(v.Extent, b.Rows)
		case p.Columns:
			r[v] = b.within(v.Extent, b.Columns)
		default:
			r[v] = 1
		}
	}
	for k, v := range p.Reduce {
		r[v] = v.Extent
		if k == p.Step {
			r[v] = min(v.Extent, b.Depth)
		}
	}
	return r
}

// reach returns how many elements an index reaches while its variables take the given numbers of values.
func reach(index expr.Expr, ranges map[*expr.Var]int64) int64 {
	extent := int64(1)
	for _, t := range expr.Linearize(index).Terms {
		extent += max(t.Coef, -t.Coef) * (values(t.Atom, ranges) - 1)
	}
	return extent
}

// elements returns how many elements of an operand a block reads in a step, and how many of them are in its last
// dimension.
func (o Operand) elements(b Box, ranges map[*expr.Var]int64) (n, row int64) {
	n, row = 1, 1
	for d, x := range o.Load.Index {
		row = b.within(o.Load.Tensor.Shape[d], reach(x, ranges))
		n *= row
	}
	return n, row
}

// Blocks returns the number of blocks.
func (p *Product) Blocks(b Box) int64 {
	blocks := max(1, b.Parts)
	for k, e := range p.Extents {
		switch k {
		case p.Rows:
			e = sketch.CeilDiv(e, b.Rows)
		case p.Columns:
			e = sketch.CeilDiv(e, b.Columns)
		}
		blocks *= e
	}
	return blocks
}

// Terms returns how many values of the divided axis a block computes.
func (p *Product) Terms(b Box) int64 { return p.Reduce[p.Step].Extent / max(1, b.Parts) }

// Steps returns how often operands are fetched for a block, and how many terms of each result are added per step.
func (p *Product) Steps(b Box) (steps, terms int64) {
	terms = 1
	for k, r := range p.Reduce {
		if k != p.Step {
			terms *= r.Extent
		}
	}
	extent := p.Terms(b)
	return sketch.CeilDiv(extent, b.Depth), terms * min(b.Depth, extent)
}

// FetchedBytes returns the bytes that a block fetches per step.
func (p *Product) FetchedBytes(b Box) (bytes int64) {
	ranges := p.ranges(b)
	for _, o := range p.Operands {
		n, _ := o.elements(b, ranges)
		bytes += n * o.Load.Tensor.DType.Bytes()
	}
	return bytes
}

// atOnce returns how many neighbours of an operand a thread can fetch at once, such that rows are whole vectors.
func (p *Product) atOnce(o Operand, b Box, f Fetching, ranges map[*expr.Var]int64) int64 {
	if f.Swizzled && p.Exchanges(o) {
		return 1
	}
	n := min(f.Vector, copyBytes/o.Load.Tensor.DType.Bytes())
	for _, row := o.elements(b, ranges); row%n != 0; {
		n /= 2
	}
	return n
}

// AllCopies returns how many thread copies bring all operands of a step.
func (p *Product) AllCopies(b Box, f Fetching) (n int64) {
	for _, o := range p.Operands {
		n += p.Copies(o, b, f)
	}
	return n
}

// Copies returns how many thread copies bring an operand of a step.
func (p *Product) Copies(o Operand, b Box, f Fetching) int64 {
	ranges := p.ranges(b)
	n, _ := o.elements(b, ranges)
	return sketch.CeilDiv(n, p.atOnce(o, b, f, ranges))
}

// SharedBytes returns an upper bound of a block's shared memory. Partial tiles at the end of an axis, and the last
// step, have code and arrays of their own.
func (p *Product) SharedBytes(b Box, f Fetching) (bytes int64) {
	ranges := p.ranges(b)
	for _, o := range p.Operands {
		n, row := o.elements(b, ranges)
		n += n / row * p.gap(o, f, row)
		align := int64(16)
		if f.Swizzled {
			align = 1024
		}
		bytes += (n*o.Load.Tensor.DType.Bytes() + align - 1) / align * align
	}
	if f.TMA {
		bytes += mbarrierBytes
	}
	steps := f.Stages
	if p.Terms(b)%b.Depth != 0 {
		steps++
	}
	for _, tile := range []struct{ extent, size int64 }{{p.Extents[p.Rows], b.Rows}, {p.Extents[p.Columns], b.Columns}} {
		if !b.Guarded && tile.extent > tile.size && tile.extent%tile.size != 0 {
			steps *= 2
		}
	}
	return bytes * steps
}
