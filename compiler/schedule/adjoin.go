package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Adjoin merges the last two reduction axes of a sum of products if the operands' elements are contiguous along
// them, such as a window's columns and their channels: three columns of three channels make nine terms. As in
// Extend, zeros extend the axis to a multiple. One operand is a constant, transformed at compile time. The other
// one is read through a copy with contiguous rows and trailing zeros: a new stage, whose number is returned. If the
// stage casts the operands, the copies have type as, which must hold all their values; Invalid keeps their own
// type. Adjoin must precede other primitives on the stage.
func (s *Schedule) Adjoin(stageID int, multiple int64, as array.DType) (copied int, err error) {
	err = s.replace("adjoin", stageID, []int{int(multiple), int(as)}, func(g *Stage) error {
		if multiple < 1 || multiple > maxExtended {
			return fmt.Errorf("%d is not a multiple, or more than %d", multiple, maxExtended)
		}
		a, err := s.adjoining(g)
		if err == nil {
			err = a.held(g, as)
		}
		if err != nil {
			return err
		}
		axis := &expr.Var{Name: a.outer.Name, Extent: (a.terms() + multiple - 1) / multiple * multiple}
		data, from := a.copied(as, axis.Extent)
		weights := s.transform(s.Constant(a.weights.Tensor), a.transform(as, axis.Extent))
		g.Body = expr.Rewrite(g.Body, func(e expr.Expr) expr.Expr {
			switch l, ok := e.(*expr.Load); {
			case !ok:
			case l.Tensor == a.weights.Tensor:
				return weights.At(append(others(l.Index, a.row, a.column), axis)...)
			case l.Tensor == a.data.Tensor:
				return data.At(append(slices.Clone(l.Index[:len(l.Index)-2]), expr.AddE(expr.MulE(from, expr.I(a.inner.Extent)), axis))...)
			}
			return e
		})
		g.Reduce = append(slices.Clone(g.Reduce[:len(g.Reduce)-2]), axis)
		g.resetNest()
		copied = s.added(data).ID
		return nil
	})
	return copied, err
}

// adjoining is a sum of products over two axes with contiguous terms.
type adjoining struct {
	data, weights *expr.Load
	// outer and inner are the axes, row and column the dimensions of the weights that they index.
	outer, inner *expr.Var
	row, column  int
}

func (a *adjoining) terms() int64 { return a.outer.Extent * a.inner.Extent }

// adjoining matches the operands of a stage, or returns an error if they cannot be adjoined.
func (s *Schedule) adjoining(g *Stage) (*adjoining, error) {
	first, second, product := Factors(g.Body)
	if g.Combiner != expr.Sum || !product || first.Tensor == second.Tensor || len(g.Reduce) < 2 {
		return nil, fmt.Errorf("stage %d is not a sum of products of two tensors over two axes", g.ID)
	}
	last := len(g.Reduce) - 1
	if anyLimited(g.Reduce[last-1:]...) {
		return nil, fmt.Errorf("a reduction axis of stage %d is open", g.ID)
	}
	a := &adjoining{data: first, weights: second, outer: g.Reduce[last-1], inner: g.Reduce[last]}
	if first.Tensor.Role == expr.Constant {
		a.data, a.weights = second, first
	}
	if a.data.Tensor.Role == expr.Constant || a.weights.Tensor.Role != expr.Constant {
		return nil, fmt.Errorf("stage %d is not a product by a constant", g.ID)
	}
	if err := s.transformable(g, a.weights.Tensor); err != nil {
		return nil, err
	}
	a.row, a.column = dimensionOf(a.weights, a.outer), dimensionOf(a.weights, a.inner)
	if a.row < 0 || a.column < 0 || !a.sideBySide() {
		return nil, fmt.Errorf("terms of stage %d are not adjacent", g.ID)
	}
	return a, nil
}

// sideBySide reports whether the inner axis covers the whole last dimension of the data, and the outer one moves
// only along the dimension before it, by one element per step.
func (a *adjoining) sideBySide() bool {
	last := len(a.data.Index) - 1
	if last < 1 || a.data.Index[last] != expr.Expr(a.inner) || a.data.Tensor.Shape[last] != a.inner.Extent {
		return false
	}
	for d, x := range a.data.Index[:last] {
		step, linear := expr.Linearize(x).Coef(a.outer)
		if !linear || expr.Uses(x, a.inner) || d < last-1 && step != 0 || d == last-1 && step != 1 {
			return false
		}
	}
	return true
}

// held returns an error unless a type holds all values of the operands that the stage casts. Invalid is accepted.
func (a *adjoining) held(g *Stage, as array.DType) error {
	for _, l := range []*expr.Load{a.data, a.weights} {
		if as != array.Invalid && (!holds(as, l.Tensor.DType) || !alwaysCast(g.Body, l.Tensor)) {
			return fmt.Errorf("%v does not hold all values of %v, or stage %d uses them as they are", as, l.Tensor.DType, g.ID)
		}
	}
	return nil
}

// cast converts a value to a type; Invalid keeps its type.
func cast(as array.DType, x expr.Expr) expr.Expr {
	if as == array.Invalid {
		return x
	}
	return expr.To(as, x)
}

// copied returns a copy of the data with contiguous rows and trailing zeros for the given number of terms, and the
// position of the first term in a row.
func (a *adjoining) copied(as array.DType, terms int64) (t *expr.Tensor, from expr.Expr) {
	of, last := a.data.Tensor, len(a.data.Index)-1
	length := of.Shape[last-1] * of.Shape[last]
	shape := append(slices.Clone(of.Shape[:last-1]), length+terms-a.terms())
	t = expr.Compute(of.Name+"_adjoined", shape, func(i []expr.Expr) expr.Expr { return cast(as, a.element(of, i, last-1, last, length)) })
	return t, expr.Linearize(a.data.Index[last-1]).Plus(expr.Linearize(a.outer), -1).Expr()
}

// element returns an element of a tensor. The last index combines the dimensions row and column; from end on the
// element is zero.
func (a *adjoining) element(of *expr.Tensor, i []expr.Expr, row, column int, end int64) expr.Expr {
	others, joined := i[:len(i)-1], i[len(i)-1]
	at := make([]expr.Expr, len(of.Shape))
	for d := range at {
		switch by := expr.I(a.inner.Extent); d {
		case row:
			at[d] = expr.Bin(expr.FloorDiv, joined, by)
		case column:
			at[d] = expr.Bin(expr.FloorMod, joined, by)
		default:
			at[d], others = others[0], others[1:]
		}
	}
	return expr.Sel(expr.Bin(expr.Lt, joined, expr.I(end)), of.At(at...), expr.Zero(of.DType))
}

// transform returns the weights with the given number of terms in the last dimension.
func (a *adjoining) transform(as array.DType, terms int64) *Transform {
	t := a.weights.Tensor
	source := expr.NewConstant(t.Name, t.DType, t.Shape...)
	shape := append(others(t.Shape, a.row, a.column), terms)
	result := expr.Compute(t.Name+"_adjoined", shape, func(i []expr.Expr) expr.Expr {
		return cast(as, a.element(source, i, a.row, a.column, a.terms()))
	})
	return &Transform{Source: source, Result: result}
}
