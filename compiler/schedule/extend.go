package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// maxExtended limits the terms that Extend adds, far above those of any instruction.
const maxExtended = 1 << 10

// Extend pads the last reduction axis of a sum of products to a multiple, for instructions that take that many
// terms. Added terms have zero factors: the stage reads both operands through copies with trailing zeros. The copy
// of a constant is made at compile time; others are new stages. Extend returns their numbers in operand order, or
// -1 for a constant. The axis must index one dimension of both operands. For integers it may also index one operand
// only, while the other one is read as a window: its added terms then multiply arbitrary elements by zero. Extend
// must precede other primitives on the stage.
func (s *Schedule) Extend(stageID int, multiple int64) (copies [2]int, err error) {
	err = s.replace("extend", stageID, []int{int(multiple)}, func(g *Stage) error {
		a, b, product := Factors(g.Body)
		last := len(g.Reduce) - 1
		switch {
		case multiple < 1 || multiple > maxExtended:
			return fmt.Errorf("%d is not a multiple, or more than %d", multiple, maxExtended)
		case g.Combiner != expr.Sum || !product || a.Tensor == b.Tensor || last < 0:
			return fmt.Errorf("stage %d is not a sum of products of two tensors", stageID)
		case anyLimited(g.Reduce[last]):
			return fmt.Errorf("the last reduction axis of stage %d is open", stageID)
		}
		terms := g.Reduce[last].Extent
		axis := &expr.Var{Name: g.Reduce[last].Name, Extent: (terms + multiple - 1) / multiple * multiple}
		var along [2]reach
		for k, l := range []*expr.Load{a, b} {
			along[k] = reachOf(l, g.Reduce[last], axis.Extent)
			if along[k].dim < 0 || along[k].window && (along[1-k].window || g.Tensor.DType.IsFloat()) {
				return fmt.Errorf("the last reduction axis of stage %d is not an index of both operands", stageID)
			}
			if l.Tensor.Role == expr.Constant {
				if err := s.transformable(g, l.Tensor); err != nil {
					return err
				}
			}
		}
		for k, l := range []*expr.Load{a, b} {
			copies[k] = s.extendOperand(g, l.Tensor, along[k])
		}
		g.Body = expr.Substitute(g.Body, map[*expr.Var]expr.Expr{g.Reduce[last]: axis})
		g.Reduce = append(slices.Clone(g.Reduce[:last]), axis)
		g.resetNest()
		return nil
	})
	return copies, err
}

// reach describes how far an operand is read along a dimension (-1 for none): its elements, padded with zeros to
// extent. window is set if other axes determine where the terms begin.
type reach struct {
	dim              int
	elements, extent int64
	window           bool
}

// reachOf returns the reach of a load whose axis is extended to the given number of terms.
func reachOf(l *expr.Load, axis *expr.Var, terms int64) reach {
	if dim := dimensionOf(l, axis); dim >= 0 {
		return reach{dim: dim, elements: axis.Extent, extent: terms}
	}
	r := reach{dim: -1}
	for d, x := range l.Index {
		if !expr.Uses(x, axis) {
			continue
		}
		step, linear := expr.Linearize(x).Coef(axis)
		if r.dim >= 0 || !linear || step < 1 || step > maxExtended {
			return reach{dim: -1}
		}
		r = reach{dim: d, elements: l.Tensor.Shape[d], extent: l.Tensor.Shape[d] + step*(terms-axis.Extent), window: true}
	}
	return r
}

// extendOperand makes a stage read a tensor through a zero-padded copy and returns its number, or -1 for a constant.
func (s *Schedule) extendOperand(g *Stage, t *expr.Tensor, r reach) int {
	if t.Role == expr.Constant {
		s.extendConstant(g, t, r)
		return -1
	}
	return s.readThrough(g, t, extended(t, r))
}

// dimensionOf returns the dimension that an axis alone indexes, if no other dimension depends on it; -1 otherwise.
func dimensionOf(l *expr.Load, axis *expr.Var) int {
	found := -1
	for d, x := range l.Index {
		switch {
		case !expr.Uses(x, axis):
		case x == expr.Expr(axis) && found < 0:
			found = d
		default:
			return -1
		}
	}
	return found
}

// extended returns a copy of a tensor with trailing zeros along a dimension.
func extended(t *expr.Tensor, r reach) *expr.Tensor {
	shape := slices.Clone(t.Shape)
	shape[r.dim] = r.extent
	return expr.Compute(t.Name+"_extended", shape, func(i []expr.Expr) expr.Expr {
		return expr.Sel(expr.Bin(expr.Lt, i[r.dim], expr.I(r.elements)), t.At(i...), expr.Zero(t.DType))
	})
}

// extendConstant makes a stage load a constant padded with zeros along a dimension.
func (s *Schedule) extendConstant(g *Stage, t *expr.Tensor, r reach) {
	tr := s.transformed(g, t, func(source *expr.Tensor) *expr.Tensor { return extended(source, r) })
	tr.compute = func(a *array.Array) *array.Array {
		out := array.New(t.DType, tr.Result.Shape...)
		row := array.Elements(t.Shape[r.dim+1:]) * t.DType.Bytes()
		from, to := t.Shape[r.dim]*row, r.extent*row
		for k := range array.Elements(t.Shape[:r.dim]) {
			copy(out.Data[k*to:], a.Data[k*from:k*from+r.elements*row])
		}
		return out
	}
}
