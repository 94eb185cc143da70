package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Fetching is how operands come into shared memory.
type Fetching struct {
	// Threads is how many fetch together, and Vector how many neighbours each takes at once at most, where they lie
	// so.
	Threads, Vector int64
	// Stages is for how many steps operands are in shared memory or under way; 1 = for the step that is computed.
	Stages int64
	// Skewed leaves gaps between rows, so that fragments of matrices are read from different banks.
	Skewed bool
	// Matrices has warps load fragments of elements of 8 or 16 bits as matrices, where rows allow that.
	Matrices bool
	// Swizzled lays operands out for the instructions of warpgroups, with terms side by side where Exchanges says so.
	Swizzled bool
	// Bulk has one thread begin copies of boxes of those operands that are Boxed.
	Bulk bool
}

// phaseBytes is the shared memory of an mbarrier at most, with what aligns others.
const phaseBytes = 16

// productRowBytes is what rows of a tensor are multiples of whose boxes are copied.
const productRowBytes = 16

// Boxed reports whether boxes of an operand can be copied: it is a whole argument, in rows that are whole, and nothing
// exchanges places on the way.
func (p *Product) Boxed(o Operand) bool {
	t, dims := o.Load.Tensor, 0
	for _, e := range t.Shape {
		if e > 1 {
			dims++
		}
	}
	row := t.Shape[len(t.Shape)-1] * t.DType.Bytes()
	return o.given && t.Strides == nil && !p.Exchanges(o) && row%productRowBytes == 0 && dims <= ir.MapDims
}

// exchangedBytes is the size of elements whose terms must lie side by side for warpgroups, and that asynchronous
// copies copy one by one.
const exchangedBytes = 4

// Exchanges reports whether lines of an operand that lie side by side can exchange places with its terms on the way to
// shared memory.
func (p *Product) Exchanges(o Operand) bool {
	last := o.Load.Index[len(o.Load.Index)-1]
	return o.feed < 0 && o.Load.DType().Bytes() == exchangedBytes && !sketch.UsesAny(last, p.Reduce) && p.terms(o) >= 0
}

// terms is the dimension of an operand along which the cut axis goes, from the beginning of a part of a sum on; -1
// where none is that alone.
func (p *Product) terms(o Operand) int {
	return slices.IndexFunc(o.Load.Index, func(x expr.Expr) bool {
		coef, linear := expr.Linearize(x).Coef(p.Reduce[p.Step])
		return linear && coef == 1 && !expr.Uses(x, p.Axes[p.Rows]) && !expr.Uses(x, p.Axes[p.Columns])
	})
}

// gap is how many elements lie behind a row of so many of an operand, where rows are skewed. Threads that have a
// fragment together are eight along rows or columns, four along terms: with rows of terms, of which each is a multiple
// of 16 bytes long, 16 bytes between them make the eight use different banks, and with rows of others 32 bytes the
// four. The eight rows of a matrix use different banks where they are an odd multiple of 16 bytes apart.
func (p *Product) gap(o Operand, f Fetching, row int64) int64 {
	bytes := o.Load.Tensor.DType.Bytes()
	switch {
	case !f.Skewed:
		return 0
	case p.loads(o, f, row):
		return OddGap(row, bytes)
	case p.termsLast(o):
		return 16 / bytes
	}
	return 32 / bytes
}

// termsLast reports whether an operand has rows of terms.
func (p *Product) termsLast(o Operand) bool {
	return sketch.UsesAny(o.Load.Index[len(o.Load.Index)-1], p.Reduce)
}

// OddGap is how many elements lie behind a row so that rows are an odd multiple of 16 bytes apart. Its length is a
// multiple of 16 bytes.
func OddGap(row, bytes int64) int64 {
	if row*bytes/ir.MatrixRowBytes%2 == 1 {
		return 0
	}
	return ir.MatrixRowBytes / bytes
}

// loads reports whether fragments of an operand with rows of so many elements are loaded as matrices: those of bytes
// cannot be turned.
func (p *Product) loads(o Operand, f Fetching, row int64) bool {
	bytes := o.Load.DType().Bytes()
	return f.Matrices && (bytes == 2 || bytes == 1 && p.termsLast(o)) && row*bytes%ir.MatrixRowBytes == 0
}

// Loads reports whether fragments of an operand are loaded as matrices.
func (p *Product) Loads(o Operand, b Box, f Fetching) bool {
	_, row := o.elements(b, p.ranges(b))
	return p.loads(o, f, row)
}

// Fetch brings the operands of a step of a box into shared memory, by all threads together. What else the reduction
// alone reads is computed on its own.
func (p *Product) Fetch(b *sketch.Builder, box Box, f Fetching, step int) {
	p.others(b)
	ranges := p.ranges(box)
	for _, o := range p.Operands {
		stage := o.feed
		if b.Err != nil {
			return
		}
		if stage < 0 {
			perm := make([]int, len(o.Load.Tensor.Shape))
			for k := range perm {
				perm[k] = k
			}
			if f.Swizzled && p.Exchanges(o) {
				last := len(perm) - 1
				perm[p.terms(o)], perm[last] = perm[last], perm[p.terms(o)]
			}
			var err error
			stage, err = b.S.CacheRead(p.Unit.Acc, o.place(b.S.Stages[p.Unit.Acc]), perm)
			b.Do(err)
		}
		b.ComputeAt(stage, p.Unit.Acc, step)
		if b.Err != nil {
			return
		}
		b.Do(b.S.SetScope(stage, schedule.Shared))
		_, row := o.elements(box, ranges)
		if gap := p.gap(o, f, row); gap > 0 {
			b.Do(b.S.StorageAlign(stage, gap))
		}
		if f.Swizzled {
			b.Do(b.S.Swizzle(stage))
		}
		if f.Bulk && p.Boxed(o) {
			b.Do(b.S.Pipeline(stage, f.Stages))
			b.Do(b.S.Bulk(stage))
			continue
		}
		how := f
		if how.Vector = p.atOnce(o, box, f, ranges); f.Swizzled && p.Exchanges(o) {
			p.alongLines(b, stage, o)
		}
		Together(b, stage, how)
	}
}

// alongLines has neighbouring threads copy neighbouring lines of an operand whose terms exchange places with them:
// they lie side by side where they come from.
func (p *Product) alongLines(b *sketch.Builder, stage int, o Operand) {
	order := make([]int, len(b.S.Stages[stage].Axes))
	for k := range order {
		order[k] = k
	}
	last := len(order) - 1
	order[p.terms(o)], order[last] = order[last], order[p.terms(o)]
	b.Do(b.S.Reorder(stage, order...))
}

// others are the stages that only the reduction reads, and that no tile shares.
func (p *Product) others(b *sketch.Builder) {
	for _, f := range p.Unit.Feeds {
		shared := slices.ContainsFunc(p.Operands, func(o Operand) bool { return o.feed == f })
		if !shared && b.Err == nil {
			Alone(b, f)
		}
	}
}

// Together has all threads of a block compute a stage, neighbours at once where f says so.
func Together(b *sketch.Builder, stage int, f Fetching) {
	if b.Err != nil {
		return
	}
	var all []int
	for _, it := range b.S.Stages[stage].Leaves {
		all = append(all, it.ID)
	}
	_, thread := b.Split(stage, b.Fuse(stage, all), f.Threads*f.Vector, schedule.Peel)
	if f.Vector > 1 {
		var lane int
		thread, lane = b.Split(stage, thread, f.Vector, schedule.Peel)
		b.Mark(b.S.Vectorize, stage, lane)
	}
	if b.Err == nil {
		b.Do(b.S.Bind(stage, thread, schedule.ThreadLevel))
	}
	if b.Err == nil && f.Stages > 1 {
		b.Do(b.S.Pipeline(stage, f.Stages))
	}
}

// place is the operand's place among the tensors that the reduction loads, some of which are copies by now.
func (o Operand) place(g *schedule.Stage) int {
	var seen []*expr.Tensor
	for _, l := range expr.Loads(g.Body) {
		if !slices.Contains(seen, l.Tensor) {
			seen = append(seen, l.Tensor)
		}
	}
	return slices.Index(seen, o.Load.Tensor)
}
