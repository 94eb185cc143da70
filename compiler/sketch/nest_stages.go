// Nest is what sketches share: the stages that one nest of loops computes, primitives applied one after the
// other, choices of numbers, and looks at stages. It knows no sketch and no device.

package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// MaxInlined bounds the product of two bodies' sizes, which bounds what inlining one into the other can make; a
// compiler takes long for expressions of many thousand nodes.
const MaxInlined = 1 << 16

// Expensive reports whether an expression is better stored than computed by each of several readers.
func Expensive(e expr.Expr) bool {
	found := false
	expr.Walk(e, func(x expr.Expr) {
		switch n := x.(type) {
		case *expr.Unary:
			found = found || n.Op.Work() == expr.Transcendental || n.Op == expr.Rsqrt // a root and a division
		case *expr.Binary:
			found = found || n.Op.Work() == expr.Transcendental
		}
	})
	return found
}

// UsesAny reports whether an expression uses one of several variables that take more than one value.
func UsesAny(e expr.Expr, vars []*expr.Var) bool {
	return slices.ContainsFunc(vars, func(v *expr.Var) bool { return v.Extent > 1 && expr.Uses(e, v) })
}

// Operations is how many operations a stage does, one for each element and step.
func Operations(g *schedule.Stage) float64 {
	n := float64(array.Elements(g.Tensor.Shape))
	for _, r := range g.Reduce {
		n *= float64(r.Extent)
	}
	return n
}

// SameLabel is the label with which all loads of g's tensor index dimension d.
func SameLabel(s *schedule.Schedule, g *schedule.Stage, d int, labels map[*expr.Var]int) (label int, ok bool) {
	label = -1
	for _, c := range s.Consumers(g) {
		for _, l := range expr.Loads(c.Body) {
			if l.Tensor != g.Tensor {
				continue
			}
			v, isVar := l.Index[d].(*expr.Var)
			found, known := labels[v]
			if !isVar || !known || label >= 0 && label != found {
				return -1, false
			}
			label = found
		}
	}
	return label, label >= 0
}

// MemoryStep is how many elements of memory lie between what a load reads for one value of an axis and for the next.
func MemoryStep(l *expr.Load, axis *expr.Var) (elements int64, linear bool) {
	flat, strides := expr.I(0), l.Tensor.MemoryStrides()
	for k, x := range l.Index {
		flat = expr.AddE(flat, expr.MulE(x, expr.I(strides[k])))
	}
	return expr.Linearize(flat).Coef(axis)
}

// Adjacent reports whether what a load reads for neighbouring values of an axis are neighbours in memory.
func Adjacent(l *expr.Load, axis *expr.Var) bool {
	step, linear := MemoryStep(l, axis)
	return linear && step == 1
}

// MovesByOne reports whether every load of g moves by one element, or not at all, along an axis.
func MovesByOne(g *schedule.Stage, axis *expr.Var) bool {
	moved := false
	for _, l := range expr.Loads(g.Body) {
		step, linear := MemoryStep(l, axis)
		if !linear || step != 0 && step != 1 {
			return false
		}
		moved = moved || step == 1
	}
	return moved
}
