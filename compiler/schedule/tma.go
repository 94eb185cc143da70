package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// TMACopy fills a swizzled, pipelined buffer by TMA copies of boxes that a single thread issues. The buffer must be a
// copy of a tensor that owns its global memory, starts at an argument's alignment, and has rows of multiples of 16
// bytes. The stage then has no loops.
func (s *Schedule) TMACopy(stageID int) error {
	g, err := s.stage(stageID)
	switch {
	case err != nil:
		return fmt.Errorf("bulk: %w", err)
	case g.TMA:
		return fmt.Errorf("bulk: stage %d is already copied as boxes", stageID)
	case g.Steps == 0 || !g.Swizzled:
		return fmt.Errorf("bulk: stage %d is not fetched ahead, or not swizzled", stageID)
	case len(g.Iters) != len(g.Axes) || slices.ContainsFunc(g.Iters, func(it *Iter) bool { return it.Kind != Serial }):
		return fmt.Errorf("bulk: stage %d has loops of its own", stageID)
	}
	if _, _, err := s.Boxes(g); err != nil {
		return fmt.Errorf("bulk: %w", err)
	}
	g.TMA = true
	s.record("bulk", stageID)
	return nil
}

// alignBytes is the required row alignment of tensors with box copies.
const alignBytes = 16

// Boxes returns the load of a stage that copies boxes of a tensor, and the axis of the stage that runs along each
// dimension of the tensor, or -1. It returns an error if the stage has another form.
func (s *Schedule) Boxes(g *Stage) (from *expr.Load, axes []int, err error) {
	from, valid, ok := g.Copy()
	if !ok || valid != nil {
		return nil, nil, fmt.Errorf("stage %d is not a copy of all that it reads", g.ID)
	}
	t := from.Tensor
	if len(t.Shape) == 0 || len(g.Axes) == 0 {
		return nil, nil, fmt.Errorf("stage %d has no rows of %s", g.ID, t.Name)
	}
	row, last := t.Shape[len(t.Shape)-1], len(g.Axes)-1
	p := s.Producer(t)
	switch {
	case p != nil && (p.Consumer != nil || p.Inlined):
		return nil, nil, fmt.Errorf("stage %d reads a tensor that is not in global memory", g.ID)
	case t.Strides != nil:
		return nil, nil, fmt.Errorf("stage %d reads %s, a part of another tensor, which may begin anywhere", g.ID, t.Name)
	case row*t.DType.Bytes()%alignBytes != 0:
		return nil, nil, fmt.Errorf("stage %d reads %s, whose rows of %d bytes are not multiples of %d", g.ID, t.Name, row*t.DType.Bytes(), alignBytes)
	}
	along := map[int]bool{}
	for d, x := range from.Index {
		axis := slices.IndexFunc(g.Axes, func(v *expr.Var) bool { return x == expr.Expr(v) })
		_, constant := x.(*expr.Int)
		if axis >= 0 && (along[axis] || g.Axes[axis].Extent != t.Shape[d]) || axis < 0 && !constant {
			return nil, nil, fmt.Errorf("stage %d reads %s by other indices than its axes", g.ID, t.Name)
		}
		along[axis] = true
		axes = append(axes, axis)
	}
	for k, v := range g.Axes {
		if !along[k] && v.Extent > 1 {
			return nil, nil, fmt.Errorf("stage %d reads the same elements of %s several times", g.ID, t.Name)
		}
	}
	if axes[len(axes)-1] != last {
		return nil, nil, fmt.Errorf("stage %d has no rows of %s", g.ID, t.Name)
	}
	return from, axes, nil
}
