package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Accesses returns those of a reduction, the result last.
func Accesses(s *schedule.Schedule, acc *schedule.Stage, packed []*expr.Tensor) []cost.Access {
	list := cost.Accesses(s, acc, len(acc.Axes)+len(acc.Reduce))
	for k := range list[:len(list)-1] {
		list[k].Packed = slices.Contains(packed, list[k].Tensor)
	}
	return list
}

// EndAccesses returns those of the stages that a nest stores, each an elementwise map of the previous one: other
// non-constant reads, and all results but the last, which Accesses includes.
func EndAccesses(s *schedule.Schedule, acc *schedule.Stage, stored []*schedule.Stage) (list []cost.Access) {
	for k, g := range stored {
		for _, a := range cost.Accesses(s, g, len(acc.Axes)+len(acc.Reduce)) {
			read := !a.Store && g != acc && a.Tensor.Role != expr.Constant && s.Producer(a.Tensor) == nil
			if read || a.Store && k < len(stored)-1 {
				list = append(list, a)
			}
		}
	}
	return list
}

// maxApart is the maximum distance in elements between neighbours' reads for which few vectors hold the data of a
// vector.
const maxApart = 4

// GroupOf returns the number of consecutive values of an axis for which a load reads the same elements, as the
// channels of a convolution's group do: the load uses the axis only in a quotient. It returns 1 if neighbours read
// elements that are a few apart, as groups of one channel with several inputs do, and 0 if the load uses the axis
// otherwise.
func GroupOf(l *expr.Load, axis *expr.Var) int64 {
	group := int64(0)
	for _, x := range l.Index {
		for _, t := range expr.Linearize(x).Terms {
			if !expr.Uses(t.Atom, axis) {
				continue
			}
			if t.Atom == expr.Expr(axis) && t.Coef > 1 && t.Coef <= maxApart && group <= 1 {
				group = 1
				continue
			}
			n, ok := t.Atom.(*expr.Binary)
			if !ok || n.Op != expr.FloorDiv || n.A != expr.Expr(axis) {
				return 0
			}
			by, ok := n.B.(*expr.Int)
			if !ok || group != 0 && group != by.Value {
				return 0
			}
			group = by.Value
		}
	}
	return group
}

// Between returns the distance in a dimension between the first elements of two groups of an axis, or 0 if the axis
// does not affect the index.
func Between(index expr.Expr, axis *expr.Var) int64 {
	for _, t := range expr.Linearize(index).Terms {
		if expr.Uses(t.Atom, axis) {
			return max(t.Coef, -t.Coef)
		}
	}
	return 0
}
