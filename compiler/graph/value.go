package graph

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/op"
)

// Value is an edge of the graph.
type Value struct {
	// ID is its number in order of creation, reproducible between runs.
	ID   int
	Name string
	// Value holds the type, and the elements of constants.
	op.Value
	// Producer is nil for inputs and constants.
	Producer *Node
	// Layout is the memory order of the axes, once layouts are assigned.
	Layout []int
	// Within is set if the value's elements are part of another one's memory.
	Within *Within
	// Stored is the element type in memory, if narrower than the value's type, which operators see.
	Stored array.DType
}

// InMemory returns the type of the value's elements in memory.
func (v *Value) InMemory() array.DType {
	if v.Stored != array.Invalid {
		return v.Stored
	}
	return v.DType
}

// Within locates a value in the memory of another one.
type Within struct {
	Of *Value
	// Begin is the index of the value's first element in Of, by axes in memory order; nil if the two are the same
	// elements in another shape.
	Begin []int64
}

// IsEmpty reports whether a value of a shape has no elements; such values are known without computation.
func IsEmpty(shape []int64) bool { return array.Elements(shape) == 0 }

// AllKnown reports whether all given values are constants.
func AllKnown(values []*Value) bool {
	return !slices.ContainsFunc(values, func(v *Value) bool { return v != nil && v.Const == nil })
}
