package operators

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

const float = array.Float32

// element holds the types of an operator's computation.
type element struct {
	// name is the type's name in requests to libraries.
	name string
	// operand is the type of operands and result; sum is the accumulator type.
	operand, weights, sum array.DType
}

var (
	floats   = element{"f32", float, float, float}
	halves   = element{"bf16", array.BFloat16, array.BFloat16, float}
	integers = element{"int8", array.Uint8, array.Int8, array.Int32}
)

// product returns the product of an operand and a weight in the accumulator type.
func (e element) product(x, w expr.Expr) expr.Expr {
	return expr.MulE(expr.To(e.sum, x), expr.To(e.sum, w))
}

// finished adds a bias to a sum whose last axis is the channels, rectifies it if requested, and converts it
// to the operand type. Integer sums are scaled per channel and rounded.
func (e element) finished(t *expr.Tensor, rectified bool) *expr.Tensor {
	last := len(t.Shape) - 1
	bias := expr.NewConstant("bias", float, t.Shape[last])
	scale := expr.NewConstant("scale", float, t.Shape[last])
	return expr.Compute("finished", t.Shape, func(i []expr.Expr) expr.Expr {
		v := expr.To(float, t.At(i...))
		if e.operand.IsInt() {
			v = expr.MulE(v, scale.At(i[last]))
		}
		v = expr.AddE(v, bias.At(i[last]))
		if rectified || e.operand.IsInt() {
			v = expr.MaxE(v, expr.Zero(float))
		}
		if e.operand.IsInt() {
			v = expr.MinE(expr.Un(expr.Round, v), &expr.Float{Value: 255, Type: float})
		}
		return expr.To(e.operand, v)
	})
}
