package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Part selects the part of a divided reduction axis, r = outer*factor + inner, that becomes an axis of the partial
// results.
type Part uint8

const (
	// Lanes keeps one partial result for each inner index, which vectors accumulate in lanes.
	Lanes Part = iota
	// Pieces keeps one for each outer index, which workers accumulate one after the other.
	Pieces
	// Planes is Pieces with the partial results of all elements contiguous: the outer index is their first axis.
	Planes
)

// RFactor factors a reduction, as Halide and TVM do. A new stage, whose number is returned, combines the terms of
// one part of reduction axis k (counted among the reduction axes) for each value of the other part, which is its
// last or first axis; the stage itself combines these partial results. The factor need not divide the extent: terms
// beyond the end are the combiner's identity. Every combiner is associative and commutative, so this is always
// legal; floating-point sums are rounded in another order. RFactor must precede other primitives on the stage.
func (s *Schedule) RFactor(stageID, k int, factor int64, part Part) (partial int, err error) {
	err = s.replace("rfactor", stageID, []int{k, int(factor), int(part)}, func(g *Stage) error {
		switch {
		case k < 0 || k >= len(g.Reduce):
			return fmt.Errorf("stage %d has no reduction axis %d", stageID, k)
		case factor < 1 || factor > g.Reduce[k].Extent:
			return fmt.Errorf("factor %d of stage %d is not between 1 and the extent %d", factor, stageID, g.Reduce[k].Extent)
		case expr.Size(g.Body) > maxBodyNodes/4:
			return fmt.Errorf("the body of stage %d is too large", stageID)
		}
		partial = s.factored(g, g.partial(k, factor, part), part == Planes).ID
		return nil
	})
	return partial, err
}

// factored makes a stage combine the partial results of p, along its first axis or its last.
func (s *Schedule) factored(g, p *Stage, first bool) *Stage {
	s.addStage(p)
	kept := p.Axes[len(p.Axes)-1]
	if first {
		kept = p.Axes[0]
	}
	combined := expr.ReduceOver(g.Tensor.Name, g.Combiner, g.Tensor.Shape, []int64{kept.Extent}, func(i, r []expr.Expr) expr.Expr {
		if first {
			return p.Tensor.At(append(r, i...)...)
		}
		return p.Tensor.At(append(i, r...)...)
	})
	limited(combined.Axes, g.Axes)
	g.Axes, g.Reduce, g.Body = combined.Axes, combined.Reduce, combined.Body
	g.Reduce[0].Limit = kept.Limit
	g.resetNest()
	return p
}

// partial returns the stage of the partial results.
func (g *Stage) partial(k int, factor int64, part Part) *Stage {
	axis := g.Reduce[k]
	outer := &expr.Var{Name: axis.Name + "o", Extent: (axis.Extent + factor - 1) / factor}
	inner := &expr.Var{Name: axis.Name + "i", Extent: factor}
	if axis.Limit != nil {
		outer.Limit = expr.Simplify(expr.Bin(expr.FloorDiv, expr.AddE(axis.Limit, expr.I(factor-1)), expr.I(factor)))
	}
	kept, reduced := inner, outer
	if part != Lanes {
		kept, reduced = outer, inner
	}
	at := len(g.Axes)
	if part == Planes {
		at = 0
	}
	term := expr.AddE(expr.MulE(outer, expr.I(factor)), inner)
	body := expr.Substitute(g.Body, map[*expr.Var]expr.Expr{axis: term})
	body = axis.Masked(term, body, g.Combiner)
	if axis.Extent%factor != 0 {
		body = expr.Sel(expr.Bin(expr.Lt, term, expr.I(axis.Extent)), body, g.Combiner.Identity(g.Tensor.DType))
	}
	return &Stage{
		Tensor:   &expr.Tensor{Name: g.Tensor.Name + "_part", DType: g.Tensor.DType, Shape: slices.Insert(slices.Clone(g.Tensor.Shape), at, kept.Extent)},
		Axes:     slices.Insert(slices.Clone(g.Axes), at, kept),
		Reduce:   slices.Replace(slices.Clone(g.Reduce), k, k+1, reduced),
		Combiner: g.Combiner, Body: body,
	}
}

// scheduled reports whether any primitive changed the stage's computation or nest, or another stage is computed
// inside it.
func (s *Schedule) scheduled(g *Stage) bool {
	if g.Decay != nil || len(g.Iters) != len(g.Axes)+len(g.Reduce) || s.hasAttached(g) || g.Consumer != nil {
		return true
	}
	for k, it := range g.Leaves {
		if it.ID != k || it.Kind != Serial {
			return true
		}
	}
	return false
}
