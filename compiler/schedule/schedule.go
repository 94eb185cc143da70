package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/userkernel"
)

// Schedule is a workload together with the primitives applied to it so far. It is not safe for concurrent use.
type Schedule struct {
	Workload *expr.Workload
	// Stages by number. The workload itself is never changed: each stage has its own copy of the computation.
	Stages []*Stage
	// Packs has the layouts of packed constants, by index in Workload.Constants.
	Packs map[int][]PackDim
	// Prefetches has how many bytes ahead packed constants are fetched, by index in Workload.Constants.
	Prefetches map[int]int64
	// Transforms has what replaces transformed constants, by index in Workload.Constants.
	Transforms map[int]*Transform
	// Own is set where the workload is computed by a kernel that somebody wrote: the stages then say what it computes,
	// and are not lowered.
	Own *userkernel.Candidate
	// algorithms are those used beside direct sums, in the order of their primitives.
	algorithms []algorithm
	steps      []step
}

// Stage is one computed tensor and the nest that computes it.
type Stage struct {
	ID int
	// Tensor is what other stages' bodies load from.
	Tensor   *expr.Tensor
	Axes     []*expr.Var
	Reduce   []*expr.Var
	Combiner expr.Combiner
	Body     expr.Expr
	// Decay is what the result so far is multiplied by in each iteration of the first reduction axis, before it adds
	// terms; nil for nothing.
	Decay    expr.Expr
	IsOutput bool
	// Iters by number.
	Iters []*Iter
	// Leaves is the loop nest, outermost first.
	Leaves []*Iter
	// Inlined stages have no nest: their body replaced every load.
	Inlined bool
	// Consumer and At are set when the stage is computed inside another's nest; nil when it is computed on its own.
	Consumer *Stage
	At       *Iter
	// Kept is set for a stage of which another one's loop over its first reduction axis may compute an element of the
	// last axis in each iteration, while all of them are kept for stages behind it. The other axes are those of Kept
	// with the numbers KeptAxes.
	Kept     *Stage
	KeptAxes []int
	// StorageAlign is the gap behind each row of the stage's buffer, in elements.
	StorageAlign int64
	// Swizzled is set where the buffer is laid out for the instructions of warpgroups.
	Swizzled bool
	// Streamed is set for an output whose vectors are stored past the caches.
	Streamed bool
	// Scope is the memory of a GPU that the stage's buffer lies in.
	Scope Scope
	// Steps is for how many steps of the loop around it a shared buffer is filled ahead; 0 = not at all.
	Steps int64
	// Walkers is how many blocks walk over the tiles of the leaf on blocks; 0 = a block has one. Band is how many
	// iterations of the outer of the two iterators that it was fused of take turns; 0 = none.
	Walkers, Band int64
	// Rounds is in how many rounds of the consumer's blocks sums are cut so that blocks have equal shares; 0 = in
	// none.
	Rounds int64
	// Bulk is set for such a buffer that is filled by copies of boxes, which one thread begins.
	Bulk bool
	// FetchBytes is how many bytes ahead the stage's buffer is fetched when it is read; 0 = not at all.
	FetchBytes int64
}

// Iter is one iterator: an axis of the stage, derived by split or fuse, or of a single iteration, which belongs to no
// axis.
type Iter struct {
	ID     int
	Reduce bool
	Kind   Kind
	// Format is that of a leaf whose terms are multiplied as matrices.
	Format Format
	// Windows are where a trimmed leaf reads something other than padding.
	Windows []Window
	// Axis is the index in Axes followed by Reduce; -1 for others.
	Axis int
	// Split is set when this iterator was split, Fuse when it was fused with another; a leaf has neither.
	Split *Split
	Fuse  *Fuse
	// Parent is the split this iterator came from, Fused the fusion; an axis has neither, nor a unit loop.
	Parent *Split
	Fused  *Fuse
	// paths is the number of ways in which it derives from axes.
	paths int
}

// Split is the relation parent = outer*Factor + inner.
type Split struct {
	Parent, Outer, Inner *Iter
	Factor               int64
	Tail                 Tail
}

// Fuse is the relation fused = a*extent(b) + b.
type Fuse struct {
	A, B, Into *Iter
}

// Kind is how a leaf's loop is executed.
type Kind uint8

// The kinds of loops. Blocks and threads are those of a GPU, matrices the terms that its instructions for matrices
// take. Lanewise terms lie in the registers of neighbouring threads. Trimmed loops leave out what reads only padding.
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

// Tail says how to handle the last, partial tile of a split that does not divide.
type Tail uint8

const (
	// Peel computes the partial tile by code of its own.
	Peel Tail = iota
	// Shift moves the last tile back so that it is full, computing some elements twice. Only for stages without
	// reduction.
	Shift
	// Guard leaves out what a full tile has beyond the end, element by element. What is computed for the tile inside
	// its nest is computed for all of it: elements beyond the end are zero, or what combining nothing gives. Only for
	// axes of results, or several fused.
	Guard
)

// New is the schedule without any primitive: every stage computed on its own, in the order of its axes.
func New(w *expr.Workload) *Schedule {
	s := &Schedule{Workload: w, Packs: map[int][]PackDim{}, Prefetches: map[int]int64{}, Transforms: map[int]*Transform{}}
	for _, t := range w.Stages {
		s.addStage(&Stage{
			Tensor: t, Axes: t.Axes, Reduce: t.Reduce, Combiner: t.Combiner, Body: t.Body,
			IsOutput: slices.Contains(w.Outputs, t),
		})
	}
	return s
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

// AxisVar is the variable of axis k, counting spatial axes first.
func (g *Stage) AxisVar(k int) *expr.Var {
	if k < len(g.Axes) {
		return g.Axes[k]
	}
	return g.Reduce[k-len(g.Axes)]
}

// LeafIndex is the position of a leaf in the nest; -1 when the iterator is no leaf.
func (g *Stage) LeafIndex(it *Iter) int { return slices.Index(g.Leaves, it) }

// Producer is the stage that computes t; nil when t is an input or a constant.
func (s *Schedule) Producer(t *expr.Tensor) *Stage {
	for _, g := range s.Stages {
		if g.Tensor == t {
			return g
		}
	}
	return nil
}

// Consumers are the stages whose bodies load g, in order; inlined stages are none.
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

// Loads are the elements that a stage reads.
func (g *Stage) Loads() []*expr.Load {
	if g.Decay == nil {
		return expr.Loads(g.Body)
	}
	return append(expr.Loads(g.Body), expr.Loads(g.Decay)...)
}

// KeptInside reports whether a stage is computed in the loop of the one that it is kept for.
func (g *Stage) KeptInside() bool { return g.Kept != nil && g.Consumer == g.Kept }

// decays reports whether a stage's results are multiplied by what g computes.
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

func (s *Schedule) leaf(stageID, iterID int) (*Stage, *Iter, error) {
	g, err := s.stage(stageID)
	if err != nil {
		return nil, nil, err
	}
	if iterID < 0 || iterID >= len(g.Iters) {
		return nil, nil, fmt.Errorf("stage %d has no iterator %d", stageID, iterID)
	}
	it := g.Iters[iterID]
	if g.Bulk {
		return nil, nil, fmt.Errorf("stage %d is copied as boxes, and has no loops", stageID)
	}
	if g.LeafIndex(it) < 0 {
		return nil, nil, fmt.Errorf("iterator %d of stage %d was already split or fused", iterID, stageID)
	}
	return g, it, nil
}
