package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// MaxInlined limits the product of two bodies' sizes, which bounds the size after inlining: C compilers are slow on
// expressions of many thousand nodes.
const MaxInlined = 1 << 16

// Expensive reports whether storing an expression is better than computing it in each of several readers.
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

// Operations returns the number of operations of a stage, one per element and step.
func Operations(g *schedule.Stage) float64 {
	n := float64(array.Elements(g.Tensor.Shape))
	for _, r := range g.Reduce {
		n *= float64(r.Extent)
	}
	return n
}

// SameLabel returns the label with which all loads of g's tensor index dimension d.
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

// MemoryStep returns the distance in elements between the addresses of a load for consecutive values of an axis.
func MemoryStep(l *expr.Load, axis *expr.Var) (elements int64, linear bool) {
	flat, strides := expr.I(0), l.Tensor.MemoryStrides()
	for k, x := range l.Index {
		flat = expr.AddE(flat, expr.MulE(x, expr.I(strides[k])))
	}
	return expr.Linearize(flat).Coef(axis)
}

// Adjacent reports whether a load reads adjacent elements for consecutive values of an axis.
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
