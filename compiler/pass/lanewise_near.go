package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// near is a load whose lanes lie so near one another that two vectors have them all: they are loaded whole and the
// lanes picked. A load of one element for all lanes does not use the lanes. Nil for any other.
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
