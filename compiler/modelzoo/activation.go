package modelzoo

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
)

// linear returns a value unchanged.
func linear(_ *builder, x string) string { return x }

func sigmoid(b *builder, x string) string { return b.unary("Sigmoid", x) }

// relu6 is a Clip with its bounds as operands.
func (b *builder) relu6(x string) string {
	low, high := b.constant("low", array.FromFloat32([]float32{0})), b.constant("high", array.FromFloat32([]float32{6}))
	return b.add("Clip", b.shapes[x], []string{x, low, high})
}

// silu is x·sigmoid(x), in two operators as exported.
func (b *builder) silu(x string) string { return b.product(x, b.unary("Sigmoid", x)) }

// hardSigmoid is max(0, min(1, x/6 + 1/2)).
func (b *builder) hardSigmoid(x string) string {
	return b.unary("HardSigmoid", x, float("alpha", 1.0/6))
}

func (b *builder) hardSwish(x string) string { return b.unary("HardSwish", x) }

// gelu is x/2·(1 + erf(x/√2)), operator by operator as exported below opset 20.
func (b *builder) gelu(x string) string {
	e := b.unary("Erf", b.broadcast("Div", x, b.scalar(math.Sqrt2)))
	return b.product(b.product(x, b.sum(e, b.scalar(1))), b.scalar(0.5))
}

// geluTanh is the approximation x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))) of GPT-2, operator by operator.
func (b *builder) geluTanh(x string) string {
	half := b.product(x, b.scalar(0.5))
	cube := b.product(b.broadcast("Pow", x, b.scalar(3)), b.scalar(0.044715))
	inner := b.product(b.sum(x, cube), b.scalar(float32(math.Sqrt(2/math.Pi))))
	return b.product(half, b.sum(b.unary("Tanh", inner), b.scalar(1)))
}
