package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// These limits, far above any real schedule, bound the cost of a malicious trace.
const (
	// maxIters limits the iterators of one stage.
	maxIters = 64
	// maxPaths limits the ways in which a leaf derives from axes, and thereby the size of axis expressions: fusing
	// the two parts of a split doubles it.
	maxPaths = 32
	// maxBodyNodes limits the size of a stage's body: inlining a chain of stages that each load the next one twice
	// doubles it every time.
	maxBodyNodes = 1 << 14
)

// Split replaces a leaf by an outer and an inner one with parent = outer*factor + inner, and returns their numbers.
// The factor need not divide the extent; tail selects how the last tile is handled.
func (s *Schedule) Split(stageID, iterID int, factor int64, tail Tail) (outer, inner int, err error) {
	err = s.changeLeaf("split", stageID, []int{iterID, int(factor), int(tail)}, func(g *Stage, it *Iter) error {
		switch {
		case factor < 1:
			return fmt.Errorf("factor %d of stage %d is not positive", factor, stageID)
		case it.Kind != Serial:
			return fmt.Errorf("iterator %d of stage %d is already annotated", iterID, stageID)
		case s.attachedAt(it):
			return fmt.Errorf("a stage is computed at iterator %d of stage %d", iterID, stageID)
		case tail == Shift && (it.Reduce || g.Combiner != expr.None):
			return fmt.Errorf("stage %d is a reduction, whose tiles cannot be shifted", stageID)
		case tail == Guard && (it.Reduce || it.Parent != nil):
			return fmt.Errorf("iterator %d of stage %d is neither an axis of its results nor a fusion of them, so its end cannot be guarded", iterID, stageID)
		case tail == Fit && (it.Axis < 0 || it.Reduce || g.AxisVar(it.Axis).Limit == nil || g.Bound()):
			return fmt.Errorf("iterator %d of stage %d is no axis of its results with a limit, or is bound to threads, so tiles cannot be fitted to it", iterID, stageID)
		case tail == Shift && g.Bound():
			return fmt.Errorf("stage %d is bound to threads, whose tiles cannot overlap", stageID)
		case len(g.Iters) >= maxIters:
			return fmt.Errorf("stage %d has too many iterators", stageID)
		}
		o, i := g.newIter(it.Reduce), g.newIter(it.Reduce)
		o.paths, i.paths = it.paths, it.paths
		rel := &Split{Parent: it, Outer: o, Inner: i, Factor: factor, Tail: tail}
		it.Split, o.Parent, i.Parent = rel, rel, rel
		k := g.LeafIndex(it)
		g.Leaves = slices.Replace(g.Leaves, k, k+1, o, i)
		outer, inner = o.ID, i.ID
		return nil
	})
	return outer, inner, err
}

// Fuse replaces two adjacent leaves, a outside b, by one over all pairs, and returns its number.
func (s *Schedule) Fuse(stageID, a, b int) (fused int, err error) {
	return s.fuse("fuse", stageID, a, b, false)
}

// FuseHeld is Fuse over the pairs that an execution has, if the iterations of b do not depend on other loops.
func (s *Schedule) FuseHeld(stageID, a, b int) (fused int, err error) {
	return s.fuse("fuse-held", stageID, a, b, true)
}

func (s *Schedule) fuse(op string, stageID, a, b int, held bool) (fused int, err error) {
	err = s.changeLeaf(op, stageID, []int{a, b}, func(g *Stage, ia *Iter) error {
		ib, err := g.leaf(b)
		switch {
		case err != nil:
			return err
		case g.LeafIndex(ib) != g.LeafIndex(ia)+1:
			return fmt.Errorf("iterator %d of stage %d is not directly inside %d", b, stageID, a)
		case ia.Reduce != ib.Reduce:
			return fmt.Errorf("iterators %d and %d of stage %d mix space and reduction", a, b, stageID)
		case ia.Kind != Serial || ib.Kind != Serial:
			return fmt.Errorf("iterators %d and %d of stage %d are already annotated", a, b, stageID)
		case s.attachedAt(ia) || s.attachedAt(ib):
			return fmt.Errorf("a stage is computed at iterator %d or %d of stage %d", a, b, stageID)
		case len(g.Iters) >= maxIters || ia.paths+ib.paths > maxPaths:
			return fmt.Errorf("stage %d has too many iterators", stageID)
		}
		f := g.newIter(ia.Reduce)
		f.paths = ia.paths + ib.paths
		rel := &Fuse{A: ia, B: ib, Into: f, Held: held}
		ia.Fuse, ib.Fuse, f.Fused = rel, rel, rel
		k := g.LeafIndex(ia)
		g.Leaves = slices.Replace(g.Leaves, k, k+2, f)
		fused = f.ID
		return nil
	})
	return fused, err
}

// Reorder permutes the given leaves within the positions that they occupy; the others stay in place.
func (s *Schedule) Reorder(stageID int, iters ...int) error {
	return s.change("reorder", stageID, iters, func(g *Stage) error {
		var places []int
		var order []*Iter
		for _, id := range iters {
			it, err := g.leaf(id)
			if err != nil {
				return err
			}
			if slices.Contains(order, it) {
				return fmt.Errorf("iterator %d of stage %d is named twice", id, stageID)
			}
			order, places = append(order, it), append(places, g.LeafIndex(it))
		}
		slices.Sort(places)
		for k, p := range places {
			g.Leaves[p] = order[k]
		}
		return nil
	})
}

// ComputeAt computes a stage inside a consumer's nest: for each iteration of the leaf, only the part that is needed
// there. Every consumer of the stage must be that one, or be computed inside its nest at that leaf or deeper, or
// after it if the nest keeps the whole stage. An output is both stored and kept for its consumers; one of them must
// be an output that reads it element by element, so that all of it is computed.
func (s *Schedule) ComputeAt(stageID, consumerID, iterID int) error {
	return s.change("compute-at", stageID, []int{consumerID, iterID}, func(g *Stage) error {
		c, err := s.stage(consumerID)
		if err != nil {
			return err
		}
		it, err := c.leaf(iterID)
		switch {
		case err != nil:
			return err
		case g.IsOutput && g.Combiner != expr.None:
			return fmt.Errorf("stage %d is a reduction and an output; cache-write it first", stageID)
		case g.IsOutput && !slices.ContainsFunc(s.Consumers(g), func(c *Stage) bool { return c.IsOutput && c.ReadsPointwise(g.Tensor) }):
			return fmt.Errorf("stage %d is an output that no other output reads element by element", stageID)
		case it.Kind == Vectorized:
			return fmt.Errorf("iterator %d of stage %d is vectorized", iterID, consumerID)
		case g.has(Parallel):
			return fmt.Errorf("stage %d has a parallel iterator", stageID)
		case g.has(Block):
			return fmt.Errorf("stage %d has blocks of its own", stageID)
		case c == g:
			return fmt.Errorf("stage %d cannot be computed inside itself", stageID)
		case g.At != nil && g.At.StreamKRounds > 0:
			return fmt.Errorf("the sums of stage %d are split by Stream-K in the tiles where it is computed", stageID)
		case it.StreamKRounds > 0:
			return fmt.Errorf("stage %d would be computed alongside the Stream-K sums of another one", stageID)
		}
		kept := g.Kept == c
		if kept && it.Axis != len(c.Axes) {
			return fmt.Errorf("stage %d is kept by the loop over the first reduction axis of stage %d alone", stageID, consumerID)
		}
		for _, x := range s.Consumers(g) {
			if !kept && !s.inside(x, c, it) {
				return fmt.Errorf("stage %d is also used by stage %d, outside iterator %d of stage %d", stageID, x.ID, iterID, consumerID)
			}
		}
		g.Consumer, g.At = c, it
		return nil
	})
}

// ReadsPointwise reports whether a stage reads a tensor of its own shape exactly at its own index.
func (g *Stage) ReadsPointwise(t *expr.Tensor) bool {
	if !slices.Equal(g.Tensor.Shape, t.Shape) {
		return false
	}
	for _, l := range expr.Loads(g.Body) {
		if l.Tensor != t {
			continue
		}
		for k, x := range l.Index {
			if x != expr.Expr(g.Axes[k]) && g.Axes[k].Extent > 1 {
				return false
			}
		}
	}
	return true
}

// inside reports whether x is c or is computed in c's nest at the leaf or deeper.
func (s *Schedule) inside(x, c *Stage, at *Iter) bool {
	for range s.Stages {
		if x == c {
			return true
		}
		if x.Consumer == nil {
			return false
		}
		if x.Consumer == c {
			return c.LeafIndex(x.At) >= c.LeafIndex(at)
		}
		x = x.Consumer
	}
	return false
}

func (s *Schedule) attachedAt(it *Iter) bool {
	return slices.ContainsFunc(s.Stages, func(g *Stage) bool { return g.At == it })
}

// Inline replaces every load of a stage by its body. The stage must not be an output or a reduction.
func (s *Schedule) Inline(stageID int) error {
	return s.change("inline", stageID, nil, func(g *Stage) error {
		switch {
		case g.IsOutput:
			return fmt.Errorf("stage %d is an output", stageID)
		case g.Combiner != expr.None:
			return fmt.Errorf("stage %d is a reduction", stageID)
		case s.decays(g) || g.Kept != nil:
			return fmt.Errorf("stage %d is kept, or is the decay of another stage", stageID)
		case s.hasAttached(g):
			return fmt.Errorf("another stage is computed inside stage %d", stageID)
		}
		foreseen := newInlining(g)
		for _, c := range s.Consumers(g) {
			if foreseen.size(c.Body) > maxBodyNodes {
				return fmt.Errorf("stage %d would make the body of stage %d larger than %d nodes", stageID, c.ID, maxBodyNodes)
			}
		}
		for _, c := range s.Consumers(g) {
			c.Body = expr.RewriteLoads(c.Body, g.Tensor, func(l *expr.Load) expr.Expr {
				values := map[*expr.Var]expr.Expr{}
				for k, v := range g.Axes {
					values[v] = l.Index[k]
				}
				return expr.Substitute(g.Body, values)
			})
		}
		g.Inlined, g.Consumer, g.At = true, nil, nil
		return nil
	})
}

func (s *Schedule) hasAttached(g *Stage) bool {
	return slices.ContainsFunc(s.Stages, func(x *Stage) bool { return x.Consumer == g })
}

// CacheWrite moves a stage's computation to a new stage, whose number it returns; the stage itself becomes a copy of
// it. The new stage can then be computed tile by tile in registers. It must come before other primitives on the stage.
func (s *Schedule) CacheWrite(stageID int) (cache int, err error) {
	err = s.replace("cache-write", stageID, nil, func(g *Stage) error {
		if g.Kept != nil {
			return fmt.Errorf("stage %d was already scheduled", stageID)
		}
		t := g.Tensor
		c := &Stage{
			Tensor: &expr.Tensor{Name: t.Name + "_tile", DType: t.DType, Shape: t.Shape},
			Axes:   g.Axes, Reduce: g.Reduce, Combiner: g.Combiner, Body: g.Body,
		}
		s.addStage(c)
		copied := expr.Compute(t.Name, t.Shape, func(i []expr.Expr) expr.Expr { return c.Tensor.At(i...) })
		limited(copied.Axes, c.Axes)
		g.Axes, g.Reduce, g.Combiner, g.Body = copied.Axes, nil, expr.None, copied.Body
		g.resetNest()
		cache = c.ID
		return nil
	})
	return cache, err
}

// Parallel distributes a leaf's iterations over all workers. It applies to one leaf of a stage, not to reduction
// axes or inside another stage's nest.
func (s *Schedule) Parallel(stageID, iterID int) error {
	return s.annotate("parallel", stageID, iterID, Parallel, nil)
}

// Vectorize computes a leaf's iterations in vector lanes. The leaf must be the innermost of its nest when lowered.
// The lanes of a vectorized reduction are combined with one another and then with the result so far, so it belongs
// at the end of a reduction whose partial results RFactor keeps in lanes.
func (s *Schedule) Vectorize(stageID, iterID int) error {
	return s.annotate("vectorize", stageID, iterID, Vectorized, nil)
}

// Unroll expands a leaf's iterations one after the other.
func (s *Schedule) Unroll(stageID, iterID int) error {
	return s.annotate("unroll", stageID, iterID, Unrolled, nil)
}

// annotate sets the kind of a leaf that check, if any, accepts. Other numbers of the primitive follow the leaf's.
func (s *Schedule) annotate(op string, stageID, iterID int, kind Kind, check func(g *Stage, it *Iter) error, others ...int) error {
	return s.changeLeaf(op, stageID, append([]int{iterID}, others...), func(g *Stage, it *Iter) error {
		switch {
		case it.Kind != Serial:
			return fmt.Errorf("iterator %d of stage %d is already annotated", iterID, stageID)
		case it.Reduce && kind == Parallel:
			return fmt.Errorf("iterator %d of stage %d is a reduction", iterID, stageID)
		case kind == Parallel && g.Consumer != nil:
			return fmt.Errorf("stage %d is computed inside another", stageID)
		case kind == Parallel && g.has(Parallel):
			return fmt.Errorf("stage %d already has a parallel iterator", stageID)
		}
		if check != nil {
			if err := check(g, it); err != nil {
				return err
			}
		}
		if innermost := []Kind{Vectorized, Dotted, Matrices, Lanewise}; slices.Contains(innermost, kind) && s.attachedAt(it) {
			return fmt.Errorf("a stage is computed at iterator %d of stage %d", iterID, stageID)
		}
		it.Kind = kind
		return nil
	})
}
