package graph

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/op"
)

// Value is an edge of the graph.
type Value struct {
	// ID is the position of its creation, the same in every run.
	ID   int
	Name string
	// Value has the type, and the elements of constants.
	op.Value
	// Producer is nil for inputs and constants.
	Producer *Node
	// Layout is the order of the axes in memory, once layouts are assigned.
	Layout []int
	// Within is set when the value's elements lie in another one's memory.
	Within *Within
	// Stored is the type of the elements in memory where it has fewer bits than the value's, which operators see.
	Stored array.DType
}

// InMemory is the type of the value's elements in memory.
func (v *Value) InMemory() array.DType {
	if v.Stored != array.Invalid {
		return v.Stored
	}
	return v.DType
}

// Within says in whose memory a value's elements lie.
type Within struct {
	Of *Value
	// Begin is the index of the value's first element in Of, by axes in the order of memory; nil when the two are the
	// same elements in another shape.
	Begin []int64
}

// IsEmpty reports whether a value of a shape has no elements; such values are known without being computed.
func IsEmpty(shape []int64) bool { return array.Elements(shape) == 0 }

// AllKnown reports whether all values that were given are constants.
func AllKnown(values []*Value) bool {
	for _, v := range values {
		if v != nil && v.Const == nil {
			return false
		}
	}
	return true
}
