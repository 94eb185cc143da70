package schedule

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Widen makes a stage read a tensor through a copy of a wider type, integer or float as before, which must hold all
// its values: the operand types of instructions are often wider than storage types. Load is numbered as in
// CacheRead, and the stage must cast each element that it loads, so that the copy changes no value. The copy is a
// new stage, whose number is returned; a constant is converted once, at compile time, and the number is -1.
func (s *Schedule) Widen(stageID, load int, to array.DType) (copied int, err error) {
	err = s.change("widen", stageID, []int{load, int(to)}, func(g *Stage) error {
		t, err := g.loaded(load)
		switch {
		case err != nil:
			return err
		case !holds(to, t.DType):
			return fmt.Errorf("%v does not hold all values of %v", to, t.DType)
		case !alwaysCast(g.Body, t):
			return fmt.Errorf("stage %d uses tensor %d as %v", stageID, load, t.DType)
		}
		wide := func(source *expr.Tensor) *expr.Tensor {
			return expr.Compute(t.Name+"_wide", t.Shape, func(i []expr.Expr) expr.Expr { return expr.To(to, source.At(i...)) })
		}
		if t.Role != expr.Constant {
			copied = s.readThrough(g, t, wide(t))
			return nil
		}
		copied, err = -1, s.transformable(g, t)
		if err == nil {
			s.transformed(g, t, wide)
		}
		return err
	})
	return copied, err
}

// transformed makes a stage load a transformed constant.
func (s *Schedule) transformed(g *Stage, t *expr.Tensor, result func(source *expr.Tensor) *expr.Tensor) *Transform {
	source := expr.NewConstant(t.Name, t.DType, t.Shape...)
	tr := &Transform{Source: source, Result: result(source)}
	g.redirect(t, s.transform(s.Constant(t), tr))
	return tr
}

// transformable returns nil if a constant can be transformed for a stage, or an error.
func (s *Schedule) transformable(g *Stage, t *expr.Tensor) error {
	switch c := s.Constant(t); {
	case s.Packs[c] != nil || s.Transforms[c] != nil:
		return fmt.Errorf("constant %d is already packed or transformed", c)
	case len(s.Consumers(&Stage{Tensor: t})) != 1:
		return fmt.Errorf("constant %d is also loaded by a stage other than %d", c, g.ID)
	}
	return nil
}

// readThrough makes a stage load from a copy of a tensor, of the same shape or longer: a new stage, whose number is
// returned.
func (s *Schedule) readThrough(g *Stage, t, copied *expr.Tensor) int {
	g.redirect(t, copied)
	return s.added(copied).ID
}

// redirect makes a stage load from another tensor of the same shape.
func (g *Stage) redirect(from, to *expr.Tensor) {
	g.Body = expr.RewriteLoads(g.Body, from, func(l *expr.Load) expr.Expr { return to.At(l.Index...) })
}

// holds reports whether type to represents every value of type from, within the same kind.
func holds(to, from array.DType) bool {
	if to.IsFloat() && from.IsFloat() {
		return to == from || to.Bytes() > from.Bytes()
	}
	if !to.IsInt() || !from.IsInt() {
		return false
	}
	signed := func(d array.DType) bool { return d <= array.Int64 }
	switch {
	case signed(to) == signed(from):
		return to.Bytes() >= from.Bytes()
	default:
		return signed(to) && to.Bytes() > from.Bytes()
	}
}

// alwaysCast reports whether an expression casts every element of a tensor that it loads.
func alwaysCast(e expr.Expr, t *expr.Tensor) bool {
	loads, casts := 0, 0
	isLoad := func(x expr.Expr) bool {
		l, ok := x.(*expr.Load)
		return ok && l.Tensor == t
	}
	expr.Walk(e, func(x expr.Expr) {
		if isLoad(x) {
			loads++
		}
		if c, ok := x.(*expr.Cast); ok && isLoad(c.A) {
			casts++
		}
	})
	return loads == casts
}
