package extent

import (
	"fmt"
	"slices"
	"strings"
)

// Shape lists the extents of axes. It is immutable; slices passed to and returned by it must not be changed.
type Shape struct {
	// most holds the upper bounds, which are the extents of a fixed shape.
	most []int64
	// all holds the extents of a shape with an open one; nil for others.
	all []Extent
}

// Fixed returns a shape of constants.
func Fixed(extents ...int64) Shape { return Shape{most: extents} }

// ShapeOf returns a shape.
func ShapeOf(extents ...Extent) Shape {
	s := Shape{most: make([]int64, len(extents))}
	for k, e := range extents {
		s.most[k] = e.Max()
		if e.IsOpen() {
			s.all = extents
		}
	}
	return s
}

// Rank returns the number of axes.
func (s Shape) Rank() int { return len(s.most) }

// IsOpen reports whether an extent is open.
func (s Shape) IsOpen() bool { return s.all != nil }

// At returns the extent of an axis.
func (s Shape) At(axis int) Extent {
	if s.all == nil {
		return Of(s.most[axis])
	}
	return s.all[axis]
}

// Extents returns the extents of all axes.
func (s Shape) Extents() []Extent {
	if s.all != nil {
		return s.all
	}
	all := make([]Extent, len(s.most))
	for k, n := range s.most {
		all[k] = Of(n)
	}
	return all
}

// Max returns upper bounds of the extents.
func (s Shape) Max() []int64 { return s.most }

// Fixed returns the extents of a shape without open ones. It panics with an *OpenError for others.
func (s Shape) Fixed() []int64 {
	for axis, e := range s.all {
		if e.IsOpen() {
			panic(&OpenError{axis, e})
		}
	}
	return s.most
}

// Equal reports whether two shapes have the same extents.
func (s Shape) Equal(t Shape) bool { return slices.Equal(s.most, t.most) && slices.Equal(s.all, t.all) }

// With returns the shape with another extent of an axis.
func (s Shape) With(axis int, e Extent) Shape {
	all := slices.Clone(s.Extents())
	all[axis] = e
	return ShapeOf(all...)
}

// Slice returns the axes from one to before another.
func (s Shape) Slice(from, to int) Shape {
	if s.all == nil {
		return Shape{most: s.most[from:to:to]}
	}
	return ShapeOf(s.all[from:to:to]...)
}

// Replace returns the shape with other extents in place of symbols.
func (s Shape) Replace(extents map[*Symbol]Extent) Shape {
	if s.all == nil {
		return s
	}
	all := make([]Extent, len(s.all))
	for k, e := range s.all {
		all[k] = e.With(extents)
	}
	return ShapeOf(all...)
}

// Concat returns the axes of several shapes.
func Concat(shapes ...Shape) Shape {
	var all []Extent
	for _, s := range shapes {
		all = append(all, s.Extents()...)
	}
	return ShapeOf(all...)
}

// Permuted returns the shape whose axis k is axis perm[k] of s.
func (s Shape) Permuted(perm []int) Shape {
	all := make([]Extent, len(perm))
	for k, axis := range perm {
		all[k] = s.At(axis)
	}
	return ShapeOf(all...)
}

// Elements returns the number of elements.
func (s Shape) Elements() Extent {
	n := Of(1)
	for _, e := range s.Extents() {
		n = n.Times(e)
	}
	return n
}

// IsEmpty reports whether the shape has no elements in any execution.
func (s Shape) IsEmpty() bool { return slices.Contains(s.most, 0) }

// String returns the extents in brackets.
func (s Shape) String() string {
	if s.all == nil {
		return fmt.Sprint(s.most)
	}
	list := make([]string, len(s.all))
	for k, e := range s.all {
		list[k] = e.String()
	}
	return "[" + strings.Join(list, " ") + "]"
}
