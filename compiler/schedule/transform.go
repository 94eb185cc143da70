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
	Tensor *expr.Tensor
	conv   *conv
	filter *filter
	// quartering is set for the right operand of Strassen's algorithm, conv and filter for the weights of Winograd's.
	quartering *quartering
}

// constantShape is the shape of a constant as stages read it.
func (s *Schedule) constantShape(constant int) []int64 {
	if t := s.Transforms[constant]; t != nil {
		return t.Tensor.Shape
	}
	return s.Workload.Constants[constant].Shape
}

// Compute is Result, to the bit, without the detour through expressions: of millions of weights it takes milliseconds.
func (t *Transform) Compute(source *array.Array) *array.Array {
	if t.quartering != nil {
		return t.quartering.sums(source)
	}
	result := array.New(t.Tensor.DType, t.Tensor.Shape...)
	ic, oc := t.conv.ic.Extent, t.conv.oc.Extent
	stride := func(v *expr.Var) int64 {
		return array.Elements(source.Shape[wholeIndex(t.conv.weights, v)+1:])
	}
	row, column, in, out := stride(t.conv.ry), stride(t.conv.rx), stride(t.conv.ic), stride(t.conv.oc)
	g := t.filter.weights
	half := make([][3]float64, len(g))
	for i := range ic {
		for o := range oc {
			for a := range g {
				for q := range int64(3) {
					first := i*in + o*out + q*column
					half[a][q] = weigh(g[a], source.Float(first), source.Float(first+row), source.Float(first+2*row))
				}
			}
			for a := range g {
				for b := range g {
					at := (int64(a*len(g)+b)*ic+i)*oc + o
					result.SetFloat(at, weigh(g[b], half[a][0], half[a][1], half[a][2]))
				}
			}
		}
	}
	return result
}

// weigh is the sum of the terms whose coefficient is not zero, in order, each product rounded by itself.
func weigh(g [3]float64, x, y, z float64) float64 {
	sum, any := 0.0, false
	for k, v := range [3]float64{x, y, z} {
		switch {
		case g[k] == 0:
		case any:
			sum += float64(v * g[k])
		default:
			sum, any = float64(v*g[k]), true
		}
	}
	return sum
}
