package schedule

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// limited gives new axes the limits of those that they stand for.
func limited(axes, of []*expr.Var) {
	for k, v := range of {
		axes[k].Limit = v.Limit
	}
}

// anyLimited reports whether some axis is open.
func anyLimited(axes ...*expr.Var) bool {
	return slices.ContainsFunc(axes, func(v *expr.Var) bool { return v.Limit != nil })
}

// sameLimit reports whether two axes always have equally many values.
func sameLimit(a, b *expr.Var) bool {
	if a.Limit == nil || b.Limit == nil {
		return a.Limit == nil && b.Limit == nil
	}
	return expr.Same(a.Limit, b.Limit)
}
