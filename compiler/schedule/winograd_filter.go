package schedule

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// filter is one dimension of a minimal filtering algorithm F(m, 3) with A = m+2 products (Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks", CVPR 2016, section 4): outputs = Aᵀ (G weights · Bᵀ inputs). Sums that several elements have in
// common are written the same way in each, so that compilers compute them once.
type filter struct {
	// weights is G, [A][3].
	weights [][3]float64
	// input is row k of Bᵀ applied to the A inputs d, output row k of Aᵀ applied to the A products p.
	input, output func(k int64, d func(i int64) expr.Expr) expr.Expr
}

// near and far are points of interpolation for m = 4. Of the symmetric choices, which share sums, 3/4 and 3/2 keep the most
// accuracy: for 256 input channels the errors have a standard deviation of 1.0e-6 of that of the outputs, against 2.4e-6 with the 1 and
// 2 of Lavin and Gray, 2.5e-6 with 1 and 1/2, and 0.6e-6 of the direct sum. All coefficients but those of the weights are exact.
const (
	near = 3.0 / 4
	far  = 3.0 / 2
)

// filters by m. Points of interpolation: for m = 2, 0, 1, -1 and infinity; for m = 4, 0, near, -near, far, -far and infinity.
var filters = map[int64]*filter{
	2: {
		weights: [][3]float64{{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}},
		input:   input2, output: output2,
	},
	4: {
		weights: [][3]float64{{1 / (near * near * far * far), 0, 0}, point(near, far), point(-near, far), point(far, near), point(-far, near), {0, 0, 1}},
		input:   input4, output: output4,
	},
}

// point is the row of G that evaluates the weights at p, for points 0, p, -p, q and -q.
func point(p, q float64) [3]float64 {
	n := 2 * p * p * (p*p - q*q)
	return [3]float64{1 / n, p / n, p * p / n}
}

func input2(k int64, d func(i int64) expr.Expr) expr.Expr {
	switch k {
	case 0:
		return expr.SubE(d(0), d(2))
	case 1:
		return expr.AddE(d(1), d(2))
	case 2:
		return expr.SubE(d(2), d(1))
	default:
		return expr.SubE(d(1), d(3))
	}
}

func output2(k int64, p func(i int64) expr.Expr) expr.Expr {
	if k == 0 {
		return expr.AddE(expr.AddE(p(1), p(2)), p(0))
	}
	return expr.SubE(expr.SubE(p(1), p(2)), p(3))
}

// input4 takes 12 operations for 6 elements, all of them multiply-adds.
func input4(k int64, d func(i int64) expr.Expr) expr.Expr {
	// plus is a + c*b, which is one instruction.
	plus := func(a expr.Expr, c float64, b expr.Expr) expr.Expr { return expr.AddE(a, scaled(c, b)) }
	const near2, far2 = near * near, far * far
	switch k {
	case 0:
		return plus(plus(d(4), -(near2+far2), d(2)), near2*far2, d(0))
	case 1, 2: // x (x ± near) (x² - far²)
		sign := float64(3 - 2*k)
		return plus(plus(d(4), -far2, d(2)), sign*near, plus(d(3), -far2, d(1)))
	case 3, 4:
		sign := float64(7 - 2*k)
		return plus(plus(d(4), -near2, d(2)), sign*far, plus(d(3), -near2, d(1)))
	default:
		return plus(plus(d(5), -(near2+far2), d(3)), near2*far2, d(1))
	}
}

// output4 takes 12 operations for 4 elements.
func output4(k int64, p func(i int64) expr.Expr) expr.Expr {
	const ratio = far / near
	nearEven, farEven := expr.AddE(p(1), p(2)), expr.AddE(p(3), p(4))
	nearOdd, farOdd := expr.SubE(p(1), p(2)), expr.SubE(p(3), p(4))
	switch k {
	case 0:
		return expr.AddE(expr.AddE(nearEven, farEven), p(0))
	case 1:
		return scaled(near, expr.AddE(nearOdd, scaled(ratio, farOdd)))
	case 2:
		return scaled(near*near, expr.AddE(nearEven, scaled(ratio*ratio, farEven)))
	default:
		return expr.AddE(scaled(near*near*near, expr.AddE(nearOdd, scaled(ratio*ratio*ratio, farOdd))), p(5))
	}
}

func scaled(c float64, e expr.Expr) expr.Expr { return expr.MulE(e, expr.F(e.DType(), c)) }

// transformWeights is G weights Gᵀ, [A, A, IC, OC], computed in double and rounded once.
func transformWeights(c *conv, f *filter) *Transform {
	source := expr.NewConstant("weights", c.dtype, c.weights.Tensor.Shape...)
	a, ic, oc := int64(len(f.weights)), c.ic.Extent, c.oc.Extent
	const wide = array.Float64
	half := expr.Compute("half", []int64{a, 3, ic, oc}, func(i []expr.Expr) expr.Expr {
		return choose(i[0], a, func(k int64) expr.Expr {
			return choose(i[1], 3, func(column int64) expr.Expr {
				return f.kernel(k, func(row int64) expr.Expr { return expr.To(wide, c.weight(source, row, column, i[2], i[3])) })
			})
		})
	})
	whole := expr.Compute("whole", []int64{a, a, ic, oc}, func(i []expr.Expr) expr.Expr {
		return expr.To(c.dtype, choose(i[1], a, func(k int64) expr.Expr {
			return f.kernel(k, func(column int64) expr.Expr { return half.At(i[0], expr.I(column), i[2], i[3]) })
		}))
	})
	stored := expr.NewConstant("transformed", c.dtype, a, a, ic, oc)
	return &Transform{Source: source, Result: whole, Tensor: stored, compute: func(weights *array.Array) *array.Array { return f.transform(c, weights) }}
}

// transform computes what transformWeights describes.
func (f *filter) transform(c *conv, source *array.Array) *array.Array {
	ic, oc := c.ic.Extent, c.oc.Extent
	result := array.New(c.dtype, int64(len(f.weights)), int64(len(f.weights)), ic, oc)
	stride := func(v *expr.Var) int64 {
		return array.Elements(source.Shape[wholeIndex(c.weights, v)+1:])
	}
	row, column, in, out := stride(c.ry), stride(c.rx), stride(c.ic), stride(c.oc)
	g := f.weights
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

// kernel is row k of G applied to the three weights w.
func (f *filter) kernel(k int64, w func(i int64) expr.Expr) expr.Expr {
	var sum expr.Expr
	for i, g := range f.weights[k] {
		if g == 0 {
			continue
		}
		term := scaled(g, w(int64(i)))
		if sum != nil {
			term = expr.AddE(sum, term)
		}
		sum = term
	}
	return sum
}

// coefficients is the matrix, [elements][a], of a transform.
func coefficients(transform func(k int64, d func(i int64) expr.Expr) expr.Expr, elements, a int64) [][]float64 {
	m := make([][]float64, elements)
	for k := range m {
		m[k] = make([]float64, a)
		for i := range a {
			// The transform is linear: its value at the unit vectors is its matrix.
			m[k][i] = constantValue(transform(int64(k), func(j int64) expr.Expr {
				if i == j {
					return expr.F(array.Float64, 1)
				}
				return expr.F(array.Float64, 0)
			}))
		}
	}
	return m
}

// constantValue computes an expression of constants, sums, differences and products.
func constantValue(e expr.Expr) float64 {
	switch n := e.(type) {
	case *expr.Float:
		return n.Value
	case *expr.Binary:
		a, b := constantValue(n.A), constantValue(n.B)
		switch n.Op {
		case expr.Add:
			return a + b
		case expr.Sub:
			return a - b
		default:
			return a * b
		}
	}
	return math.NaN()
}

// WinogradGrowth is how much larger the rounding errors of F(m x m, 3x3) are than those of the direct sum, as the ratio of their
// standard deviations when the errors of single operations are independent: for each output of one dimension, the norm of (Aᵀ
// row) · (norms of G's rows) · (norms of Bᵀ's rows) against that of the three direct terms, squared for two dimensions. It replaces
// the largest sums in the bound of Barabasz, Anderson, Soodhalter and Gregg, "Error Analysis and Improving the Accuracy of Winograd
// Convolution for Deep Neural Networks", ACM TOMS 46(4), 2020, section 3, which holds in the worst case, by norms.
// About 1.7 for m = 2 and 8.8 for m = 4; 1 for an m that is none.
func WinogradGrowth(m int64) float64 {
	f, ok := filters[m]
	if !ok {
		return 1
	}
	a := m + 2
	in, out := coefficients(f.input, a, a), coefficients(f.output, m, a)
	largest := 0.0
	for _, row := range out {
		sum := 0.0
		for k, c := range row {
			sum += c * c * squares(f.weights[k][:]) * squares(in[k])
		}
		largest = max(largest, sum/3)
	}
	return largest
}

func squares(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return sum
}
