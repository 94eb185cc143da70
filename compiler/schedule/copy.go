package schedule

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Copy returns the source of a stage that copies, and its condition or nil; ok is false for other stages.
func (g *Stage) Copy() (from *expr.Load, valid expr.Expr, ok bool) { return CopyOf(g.Body) }

// CopyOf matches a value that is an element, or an element under conditions and zero elsewhere.
func CopyOf(e expr.Expr) (from *expr.Load, valid expr.Expr, ok bool) {
	for {
		n, isSelect := e.(*expr.Select)
		if !isSelect {
			break
		}
		if len(expr.Loads(n.Cond)) > 0 || !IsZero(n.B) {
			return nil, nil, false
		}
		e, valid = n.A, expr.Both(valid, n.Cond)
	}
	from, ok = e.(*expr.Load)
	return from, valid, ok && len(expr.Loads(from)) == 1
}

// IsZero reports whether a value is a zero of any type: padding in 16-bit types is a converted zero.
func IsZero(e expr.Expr) bool {
	switch n := e.(type) {
	case *expr.Cast:
		return IsZero(n.A)
	case *expr.Float:
		return n.Value == 0 && !math.Signbit(n.Value)
	case *expr.Int:
		return n.Value == 0
	}
	return false
}

// noBoxes returns an error if a stage has no loops, since boxes are copied in their place.
func (g *Stage) noBoxes() error {
	if !g.TMA {
		return nil
	}
	return fmt.Errorf("stage %d is copied as boxes, and has no loops", g.ID)
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
