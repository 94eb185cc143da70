package schedule

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// bilinear is an algorithm for the product of matrices of 2 x 2 blocks: out = C ((L left) · (R right)). Blocks are
// numbered row by row, and the inner products are matrix products. Rows of left and right correspond to products,
// rows of out to blocks.
type bilinear struct {
	left, right, out [][]float64
}

// strassen is the algorithm of V. Strassen, "Gaussian elimination is not optimal", Numerische Mathematik 13, 1969.
// Winograd's variant saves additions, which do not dominate here, and has larger rounding errors.
var strassen = bilinear{
	left: [][]float64{
		{1, 0, 0, 1}, {0, 0, 1, 1}, {1, 0, 0, 0}, {0, 0, 0, 1}, {1, 1, 0, 0}, {-1, 0, 1, 0}, {0, 1, 0, -1},
	},
	right: [][]float64{
		{1, 0, 0, 1}, {1, 0, 0, 0}, {0, 1, 0, -1}, {-1, 0, 1, 0}, {0, 0, 0, 1}, {1, 1, 0, 0}, {0, 0, 1, 1},
	},
	out: [][]float64{
		{1, 0, 0, 1, -1, 0, 1}, {0, 0, 1, 0, 1, 0, 0}, {0, 1, 0, 1, 0, 0, 0}, {1, -1, 1, 0, 0, 1, 0},
	},
}

// products returns the number of block multiplications.
func (b *bilinear) products() int64 { return int64(len(b.left)) }

// growth returns the ratio of the standard deviations of rounding errors to those of the direct sum, assuming that
// the errors of operations are independent. The variance of a product's terms grows by the squared norms of its two
// combinations, and the variances of an output's products add up; see StrassenGrowth.
func (b *bilinear) growth() float64 {
	largest := 0.0
	for _, row := range b.out {
		sum := 0.0
		for p, c := range row {
			sum += c * c * squares(b.left[p]) * squares(b.right[p])
		}
		largest = max(largest, sum/2)
	}
	return math.Sqrt(largest)
}

// combination returns the linear combination of terms, with positive coefficients first.
func combination(coefficients []float64, term func(k int64) expr.Expr) expr.Expr {
	var sum expr.Expr
	each(coefficients, func(k int, c float64) {
		x, minus := term(int64(k)), c < 0
		if sum == nil && minus || c != 1 && c != -1 {
			x, minus = scaled(c, x), false
		}
		switch {
		case sum == nil:
			sum = x
		case minus:
			sum = expr.SubE(sum, x)
		default:
			sum = expr.AddE(sum, x)
		}
	})
	return sum
}

// combine computes combination for rows of numbers, in the same order.
func combine(row, coefficients []float64, term func(k, column int64) float64) {
	first := true
	each(coefficients, func(k int, c float64) {
		for i := range row {
			if x := float64(c * term(int64(k), int64(i))); first {
				row[i] = x // not 0 + x, which loses the sign of a zero
			} else {
				row[i] += x
			}
		}
		first = false
	})
}

// each visits the nonzero coefficients: positive ones, then negative ones.
func each(coefficients []float64, visit func(k int, c float64)) {
	for _, positive := range []bool{true, false} {
		for k, c := range coefficients {
			if c != 0 && (c > 0) == positive {
				visit(k, c)
			}
		}
	}
}

// halve returns half of n, rounded up to whole groups.
func halve(n, group int64) int64 { return (n + 2*group - 1) / (2 * group) * group }
