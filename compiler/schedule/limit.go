package schedule

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// limited copies the limits of axes to the new ones that replace them.
func limited(axes, of []*expr.Var) {
	for k, v := range of {
		axes[k].Limit = v.Limit
	}
}

// anyLimited reports whether any axis has a dynamic extent.
func anyLimited(axes ...*expr.Var) bool {
	return slices.ContainsFunc(axes, func(v *expr.Var) bool { return v.Limit != nil })
}

// sameLimit reports whether two axes always have the same number of values.
func sameLimit(a, b *expr.Var) bool {
	if a.Limit == nil || b.Limit == nil {
		return a.Limit == nil && b.Limit == nil
	}
	return expr.Same(a.Limit, b.Limit)
}
