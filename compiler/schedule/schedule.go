package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/userkernel"
)

// Schedule is a workload with the primitives applied to it so far. It is not safe for concurrent use.
type Schedule struct {
	Workload *expr.Workload
	// Stages holds the stages by number. The workload itself never changes: each stage has its own copy of the
	// computation.
	Stages []*Stage
	// Packs holds the layouts of packed constants, by index in Workload.Constants.
	Packs map[int][]PackDim
	// Prefetches holds the prefetch distances of packed constants in bytes, by index in Workload.Constants.
	Prefetches map[int]int64
	// Transforms holds the replacements of transformed constants, by index in Workload.Constants.
	Transforms map[int]*Transform
	// Own is set if a user kernel computes the workload. The stages then define the result and are not lowered.
	Own *userkernel.Candidate
	// algorithms lists the algorithms other than direct sums, in the order of their primitives.
	algorithms []algorithm
	steps      []step
}

// Stage is one computed tensor and the nest that computes it.
type Stage struct {
	ID int
	// Tensor is the tensor that other stages load.
	Tensor   *expr.Tensor
	Axes     []*expr.Var
	Reduce   []*expr.Var
	Combiner expr.Combiner
	Body     expr.Expr
	// Decay is the factor applied to the result so far in each iteration of the first reduction axis, before it
	// adds terms; nil for none.
	Decay    expr.Expr
	IsOutput bool
	// Iters holds the iterators by number.
	Iters []*Iter
	// Leaves is the loop nest, outermost first.
	Leaves []*Iter
	// Inlined stages have no nest: their body replaced every load.
	Inlined bool
	// Consumer and At are set if the stage is computed inside another's nest, and nil otherwise.
	Consumer *Stage
	At       *Iter
	// Kept is set if the loop over the first reduction axis of stage Kept may compute one element of this stage's
	// last axis per iteration, while all elements are kept for later stages. The other axes are those of Kept with
	// the numbers KeptAxes.
	Kept     *Stage
	KeptAxes []int
	Buffer
}

// Iter is one iterator: an axis of the stage, one derived by split or fuse, or a unit loop that belongs to no axis.
type Iter struct {
	ID     int
	Reduce bool
	Kind   Kind
	// Format is the format of a leaf whose terms are multiplied by matrix instructions.
	Format Format
	// Windows lists the ranges in which a trimmed leaf reads more than padding.
	Windows []Window
	// Axis is the index in Axes followed by Reduce; -1 for derived iterators.
	Axis int
	Distribution
	// Split is set if this iterator was split, Fuse if it was fused with another; a leaf has neither.
	Split *Split
	Fuse  *Fuse
	// Parent is the split that created this iterator, Fused the fusion; axes and unit loops have neither.
	Parent *Split
	Fused  *Fuse
	// paths is the number of ways in which the iterator derives from axes.
	paths int
}

// Split is the relation parent = outer*Factor + inner.
type Split struct {
	Parent, Outer, Inner *Iter
	Factor               int64
	Tail                 Tail
}

// Fuse is the relation fused = a*extent(b) + b. If Held is set, extent(b) is that of an execution.
type Fuse struct {
	A, B, Into *Iter
	Held       bool
}

// Kind is the execution mode of a leaf's loop.
type Kind uint8

// The kinds of loops. Blocks and threads are those of a GPU; matrix loops run over the terms of matrix instructions.
// Lanewise terms lie in the registers of neighbouring threads. Trimmed loops skip terms that read only padding.
const (
	Serial Kind = iota
	Parallel
	Vectorized
	Unrolled
	Dotted
	Block
	Thread
	Matrices
	Lanewise
	Trimmed
)

// Tail selects how the last, partial tile of a split is handled.
type Tail uint8

const (
	// Peel computes the partial tile in separate code.
	Peel Tail = iota
	// Shift moves the last tile back so that it is full, which computes some elements twice. It applies only to
	// stages without reduction.
	Shift
	// Guard skips the elements of the last tile beyond the end one by one. Stages computed inside the tile compute
	// all of it: elements beyond the end are zero or the combiner's identity. It applies only to result axes, or
	// several fused.
	Guard
	// Fit computes the tile that the extent of an execution cuts short in separate code for its number of iterations,
	// rounded up to a multiple of FitStep. It applies only to result axes with a limit.
	Fit
)

// maxFits is the maximum number of sizes of a fitted tile.
const maxFits = 8

// FitStep returns the difference of the sizes of a fitted tile of at most factor iterations.
func FitStep(factor int64) int64 { return (factor + maxFits - 1) / maxFits }

// New returns a schedule without primitives: every stage computed on its own, in axis order.
func New(w *expr.Workload) *Schedule {
	s := &Schedule{Workload: w, Packs: map[int][]PackDim{}, Prefetches: map[int]int64{}, Transforms: map[int]*Transform{}}
	for _, t := range w.Stages {
		s.added(t).IsOutput = slices.Contains(w.Outputs, t)
	}
	return s
}

// added returns a new stage that computes a tensor, possibly by a reduction.
func (s *Schedule) added(t *expr.Tensor) *Stage {
	g := &Stage{Tensor: t, Axes: t.Axes, Reduce: t.Reduce, Combiner: t.Combiner, Body: t.Body}
	s.addStage(g)
	return g
}

func (s *Schedule) addStage(g *Stage) {
	g.ID = len(s.Stages)
	s.Stages = append(s.Stages, g)
	g.resetNest()
}

func (g *Stage) resetNest() {
	g.Iters, g.Leaves = nil, nil
	for k := range len(g.Axes) + len(g.Reduce) {
		it := g.newIter(k >= len(g.Axes))
		it.Axis = k
		g.Leaves = append(g.Leaves, it)
	}
}

func (g *Stage) newIter(reduce bool) *Iter {
	it := &Iter{ID: len(g.Iters), Reduce: reduce, Axis: -1, paths: 1}
	g.Iters = append(g.Iters, it)
	return it
}

// AxisVar returns the variable of axis k, counting spatial axes first.
func (g *Stage) AxisVar(k int) *expr.Var {
	if k < len(g.Axes) {
		return g.Axes[k]
	}
	return g.Reduce[k-len(g.Axes)]
}

// LeafIndex returns the position of a leaf in the nest, or -1 if the iterator is not a leaf.
func (g *Stage) LeafIndex(it *Iter) int { return slices.Index(g.Leaves, it) }

// Producer returns the stage that computes t, or nil if t is an input or a constant.
func (s *Schedule) Producer(t *expr.Tensor) *Stage {
	for _, g := range s.Stages {
		if g.Tensor == t {
			return g
		}
	}
	return nil
}

// Consumers returns the stages whose bodies load g, in order, except inlined ones.
func (s *Schedule) Consumers(g *Stage) []*Stage {
	var list []*Stage
	for _, c := range s.Stages {
		if c.Inlined || c == g {
			continue
		}
		if slices.ContainsFunc(c.Loads(), func(l *expr.Load) bool { return l.Tensor == g.Tensor }) {
			list = append(list, c)
		}
	}
	return list
}

// Loads returns the elements that a stage reads.
func (g *Stage) Loads() []*expr.Load {
	if g.Decay == nil {
		return expr.Loads(g.Body)
	}
	return append(expr.Loads(g.Body), expr.Loads(g.Decay)...)
}

// KeptInside reports whether a stage is computed in the loop of the stage that it is kept for.
func (g *Stage) KeptInside() bool { return g.Kept != nil && g.Consumer == g.Kept }

// decays reports whether the results of a stage are scaled by the values of g.
func (s *Schedule) decays(g *Stage) bool {
	return slices.ContainsFunc(s.Stages, func(c *Stage) bool {
		return c.Decay != nil && slices.ContainsFunc(expr.Loads(c.Decay), func(l *expr.Load) bool { return l.Tensor == g.Tensor })
	})
}

func (s *Schedule) stage(id int) (*Stage, error) {
	if id < 0 || id >= len(s.Stages) {
		return nil, fmt.Errorf("there is no stage %d", id)
	}
	g := s.Stages[id]
	if g.Inlined {
		return nil, fmt.Errorf("stage %d is inlined", id)
	}
	return g, nil
}

// leaf returns a leaf by its number.
func (g *Stage) leaf(id int) (*Iter, error) {
	switch {
	case id < 0 || id >= len(g.Iters):
		return nil, fmt.Errorf("stage %d has no iterator %d", g.ID, id)
	case g.TMA:
		return nil, g.noBoxes()
	case g.LeafIndex(g.Iters[id]) < 0:
		return nil, fmt.Errorf("iterator %d of stage %d was already split or fused", id, g.ID)
	}
	return g.Iters[id], nil
}

// limited copies the limits of axes to the new ones that replace them.
func limited(axes, of []*expr.Var) {
	for k, v := range of {
		axes[k].Limit = v.Limit
	}
}

// anyLimited reports whether any axis has a dynamic extent.
func anyLimited(axes ...*expr.Var) bool {
	return slices.ContainsFunc(axes, func(v *expr.Var) bool { return v.Limit != nil })
}

// sameLimit reports whether two axes always have the same number of values.
func sameLimit(a, b *expr.Var) bool {
	if a.Limit == nil || b.Limit == nil {
		return a.Limit == nil && b.Limit == nil
	}
	return expr.Same(a.Limit, b.Limit)
}
