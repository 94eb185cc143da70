package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// near rewrites a load whose lanes fit into two adjacent vectors: it loads these whole and picks the lanes. It
// returns nil for other loads. A load of one element for all lanes does not depend on the lane.
func (l *lanewiseLoop) near(n *expr.Load) expr.Expr {
	if l.in.InRegisters(n.Tensor) {
		return nil
	}
	first, offsets := ir.Offsets(n.Index[0], l.lane)
	if offsets == nil {
		return nil
	}
	if slices.Min(offsets) == slices.Max(offsets) {
		return l.at(0, n)
	}
	if p := ir.Pick(l.lane, n.Tensor, first, offsets); p != nil {
		return p
	}
	return nil
}
