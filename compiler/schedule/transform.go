package schedule

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Transform replaces a constant by values computed from it once, when the model is compiled.
type Transform struct {
	// Source stands for the constant in the computation of Result.
	Source, Result *expr.Tensor
	// Tensor is the constant that stages load in its place, of Result's type and shape.
	Tensor  *expr.Tensor
	compute func(source *array.Array) *array.Array
}

// Compute is Result, to the bit, without the detour through expressions: of millions of weights it takes milliseconds.
func (t *Transform) Compute(source *array.Array) *array.Array { return t.compute(source) }

// constantShape is the shape of a constant as stages read it.
func (s *Schedule) constantShape(constant int) []int64 {
	if t := s.Transforms[constant]; t != nil {
		return t.Tensor.Shape
	}
	return s.Workload.Constants[constant].Shape
}
