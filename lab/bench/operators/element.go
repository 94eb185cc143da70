package operators

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

const float = array.Float32

// element is the types that an operator computes with.
type element struct {
	// name is what libraries are asked for.
	name string
	// operand is the type of what is computed and of the result, sum the one in which products are added up.
	operand, weights, sum array.DType
}

var (
	floats   = element{"f32", float, float, float}
	halves   = element{"bf16", array.BFloat16, array.BFloat16, float}
	integers = element{"int8", array.Uint8, array.Int8, array.Int32}
)

// product of an operand and a weight, as it is added up.
func (e element) product(x, w expr.Expr) expr.Expr {
	return expr.MulE(expr.To(e.sum, x), expr.To(e.sum, w))
}

// finished is a sum of which the last axis is the channels, with a bias, and then rectified where that is wanted, in
// the operand's type. Sums of integers are scaled, by channel for the operand and the weights, and rounded.
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
