package schedule

import (
	"cmp"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Transform replaces a constant by values computed from it once, at compile time.
type Transform struct {
	// Source stands for the constant in the computation of Result.
	Source, Result *expr.Tensor
	// Tensor is the replacement that stages load, with the type and shape of Result.
	Tensor *expr.Tensor
	conv   *conv
	// rows and columns are the filters in each direction, for transformed Winograd weights.
	rows, columns *filter
	// quartered is set for the sums of Strassen's right operand instead.
	quartered bool
	// compute returns bitwise the same values as Result, where evaluating expressions would take long; nil otherwise.
	compute func(source *array.Array) *array.Array
}

// Compute returns the values of Result.
func (t *Transform) Compute(source *array.Array) *array.Array {
	if t.compute != nil {
		return t.compute(source)
	}
	result := []*expr.Tensor{t.Result}
	values, err := expr.Evaluate(&expr.Workload{Constants: []*expr.Tensor{t.Source}, Stages: result, Outputs: result}, []*array.Array{source})
	if err != nil { // the shape of the constant is that of the source
		panic(err)
	}
	return values[0]
}

// transform replaces a constant, and returns the tensor that stages load for it.
func (s *Schedule) transform(constant int, t *Transform) *expr.Tensor {
	t.Tensor = cmp.Or(t.Tensor, expr.NewConstant(t.Result.Name, t.Result.DType, t.Result.Shape...))
	s.Transforms[constant] = t
	return t.Tensor
}

// AddedBytes returns the growth of transformed constants in bytes: that of Strassen's sums, and the total.
func (s *Schedule) AddedBytes() (sums, all int64) {
	for c, t := range s.Transforms {
		constant := s.Workload.Constants[c]
		added := array.Elements(t.Tensor.Shape)*t.Tensor.DType.Bytes() - array.Elements(constant.Shape)*constant.DType.Bytes()
		if all += added; t.quartered {
			sums += added
		}
	}
	return sums, all
}

// Constant returns the index in Workload.Constants of the constant that stages load as t, or -1 for other tensors.
func (s *Schedule) Constant(t *expr.Tensor) int {
	for c := range s.Workload.Constants {
		if s.ConstantTensor(c) == t {
			return c
		}
	}
	return -1
}

// ConstantTensor returns the tensor that stages load for a constant: itself, or its replacement.
func (s *Schedule) ConstantTensor(constant int) *expr.Tensor {
	if t := s.Transforms[constant]; t != nil {
		return t.Tensor
	}
	return s.Workload.Constants[constant]
}

// winogradWeights computes the weights that transformWeights describes.
func (t *Transform) winogradWeights(source *array.Array) *array.Array {
	result := array.New(t.Tensor.DType, t.Tensor.Shape...)
	ic, oc := t.conv.ic.Extent, t.conv.oc.Extent
	stride := func(v *expr.Var) int64 {
		return array.Elements(source.Shape[wholeIndex(t.conv.weights, v)+1:])
	}
	row, column, in, out := stride(t.conv.ry), stride(t.conv.rx), stride(t.conv.ic), stride(t.conv.oc)
	kernel := make([]float64, t.rows.taps)
	half := make([]float64, t.columns.taps*t.rows.products()) // [products of rows][columns]
	for i := range ic {
		for o := range oc {
			for q := range t.columns.taps {
				for r := range kernel {
					kernel[r] = source.Float(i*in + o*out + q*column + int64(r)*row)
				}
				for a, g := range t.rows.weights {
					half[int64(a)*t.columns.taps+q] = weigh(g, kernel)
				}
			}
			for a := range t.rows.products() {
				for b, g := range t.columns.weights {
					at := ((a*t.columns.products()+int64(b))*ic+i)*oc + o
					result.SetFloat(at, weigh(g, half[a*t.columns.taps:]))
				}
			}
		}
	}
	return result
}

// weigh returns the sum of the terms with nonzero coefficients, in order, with each product rounded.
func weigh(g, values []float64) float64 {
	sum, any := 0.0, false
	for k, c := range g {
		switch {
		case c == 0:
		case any:
			sum += float64(values[k] * c)
		default:
			sum, any = float64(values[k]*c), true
		}
	}
	return sum
}
