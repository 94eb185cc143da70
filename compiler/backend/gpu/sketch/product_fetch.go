package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
)

// Fetching describes how operands reach shared memory.
type Fetching struct {
	// Threads is the number of threads that fetch cooperatively, and Vector the maximum number of contiguous elements
	// per copy.
	Threads, Vector int64
	// Stages is the depth of the pipeline: the number of steps whose operands are in shared memory or in flight. 1
	// means only the current step.
	Stages int64
	// Skewed pads rows, so that fragments of matrices are read from different banks.
	Skewed bool
	// Matrices makes warps load fragments of 8-bit or 16-bit elements as matrices, if the rows permit it.
	Matrices bool
	// Swizzled lays operands out for warpgroup instructions, with contiguous terms if Exchanges requires it.
	Swizzled bool
	// TMA makes one thread start TMA copies of the operands that support it.
	TMA bool
}

// mbarrierBytes is the maximum shared memory of an mbarrier, including alignment.
const mbarrierBytes = 16

// SupportsTMA reports whether TMA can copy boxes of an operand: it must be a whole argument with whole rows, and not
// be transposed on the way.
func (p *Product) SupportsTMA(o Operand) bool {
	t, dims := o.Load.Tensor, 0
	for _, e := range t.Shape {
		if e > 1 {
			dims++
		}
	}
	row := t.Shape[len(t.Shape)-1] * t.DType.Bytes()
	return o.given && t.Strides == nil && !p.Exchanges(o) && row%rowBytes == 0 && dims <= nvidia.MaxMapDims
}

// exchangedBytes is the size of elements that warpgroups need with contiguous terms. Asynchronous copies move them
// one by one.
const exchangedBytes = 4

// Exchanges reports whether an operand with contiguous lines can be transposed on the way to shared memory, so that
// its terms are contiguous.
func (p *Product) Exchanges(o Operand) bool {
	last := o.Load.Index[len(o.Load.Index)-1]
	return o.feed < 0 && o.Load.DType().Bytes() == exchangedBytes && !sketch.UsesAny(last, p.Reduce) && p.terms(o) >= 0
}

// terms returns the dimension of an operand that the divided axis indexes alone, starting at a part of a sum, or -1.
func (p *Product) terms(o Operand) int {
	return slices.IndexFunc(o.Load.Index, func(x expr.Expr) bool {
		coef, linear := expr.Linearize(x).Coef(p.Reduce[p.Step])
		return linear && coef == 1 && !expr.Uses(x, p.Axes[p.Rows]) && !expr.Uses(x, p.Axes[p.Columns])
	})
}

// gap returns the padding after a row of an operand in elements, if rows are skewed. Threads with a common fragment
// are eight along rows or columns and four along terms. With rows of terms, each a multiple of 16 bytes, a padding of
// 16 bytes gives the eight different banks; with other rows, 32 bytes do so for the four. The eight rows of a matrix
// use different banks if their stride is an odd multiple of 16 bytes.
func (p *Product) gap(o Operand, f Fetching, row int64) int64 {
	bytes := o.Load.Tensor.DType.Bytes()
	switch {
	case !f.Skewed:
		return 0
	case p.loads(o, f, row):
		return OddRowPadding(row, bytes)
	case p.termsLast(o):
		return 16 / bytes
	}
	return 32 / bytes
}

// termsLast reports whether the terms of an operand are contiguous.
func (p *Product) termsLast(o Operand) bool {
	return sketch.UsesAny(o.Load.Index[len(o.Load.Index)-1], p.Reduce)
}

// OddRowPadding returns the padding in elements after which the stride of rows is an odd multiple of 16 bytes. Rows
// must be a multiple of 16 bytes.
func OddRowPadding(row, bytes int64) int64 {
	if row*bytes/nvidia.MatrixRowBytes%2 == 1 {
		return 0
	}
	return nvidia.MatrixRowBytes / bytes
}

// loads reports whether fragments of an operand with rows of the given length are loaded as matrices. Bytes cannot be
// transposed.
func (p *Product) loads(o Operand, f Fetching, row int64) bool {
	bytes := o.Load.DType().Bytes()
	return f.Matrices && (bytes == 2 || bytes == 1 && p.termsLast(o)) && row*bytes%nvidia.MatrixRowBytes == 0
}

// Loads reports whether fragments of an operand are loaded as matrices.
func (p *Product) Loads(o Operand, b Box, f Fetching) bool {
	_, row := o.elements(b, p.ranges(b))
	return p.loads(o, f, row)
}

// Fetch makes all threads fetch the operands of a box's step into shared memory cooperatively. Other stages that only
// the reduction reads are computed separately.
func (p *Product) Fetch(b *sketch.Builder, box Box, f Fetching, step int) {
	for _, feed := range p.Unit.Feeds {
		if !slices.ContainsFunc(p.Operands, func(o Operand) bool { return o.feed == feed }) {
			Alone(b, feed)
		}
	}
	ranges := p.ranges(box)
	for _, o := range p.Operands {
		stage := o.feed
		if stage < 0 {
			perm := sketch.Axes(len(o.Load.Tensor.Shape))
			if f.Swizzled && p.Exchanges(o) {
				last := len(perm) - 1
				perm[p.terms(o)], perm[last] = perm[last], perm[p.terms(o)]
			}
			stage = sketch.Get(b.S.CacheRead(p.Unit.Acc, slices.Index(b.S.Stages[p.Unit.Acc].Operands(), o.Load.Tensor), perm))
		}
		b.ComputeAt(stage, p.Unit.Acc, step)
		b.Do(b.S.SetScope(stage, schedule.Shared))
		_, row := o.elements(box, ranges)
		if gap := p.gap(o, f, row); gap > 0 {
			b.Do(b.S.StorageAlign(stage, gap))
		}
		if f.Swizzled {
			b.Do(b.S.Swizzle(stage))
		}
		if f.TMA && p.SupportsTMA(o) {
			b.Do(b.S.Pipeline(stage, f.Stages))
			b.Do(b.S.TMACopy(stage))
			continue
		}
		how := f
		if how.Vector = p.atOnce(o, box, f, ranges); f.Swizzled && p.Exchanges(o) {
			p.alongLines(b, stage, o)
		}
		CooperativeFetch(b, stage, how)
	}
}

// alongLines makes neighbouring threads copy neighbouring lines of an operand that is transposed on the way. The
// lines are contiguous in the source.
func (p *Product) alongLines(b *sketch.Builder, stage int, o Operand) {
	order := sketch.Axes(len(b.S.Stages[stage].Axes))
	last := len(order) - 1
	order[p.terms(o)], order[last] = order[last], order[p.terms(o)]
	b.Do(b.S.Reorder(stage, order...))
}

// CooperativeFetch makes all threads of a block compute a stage, in vectors if f says so.
func CooperativeFetch(b *sketch.Builder, stage int, f Fetching) {
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
	b.Do(b.S.Bind(stage, thread, schedule.ThreadLevel))
	if f.Stages > 1 {
		b.Do(b.S.Pipeline(stage, f.Stages))
	}
}
