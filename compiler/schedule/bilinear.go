package schedule

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// bilinear is an algorithm that multiplies matrices of 2 x 2 blocks: out = C ((L left) · (R right)), where the blocks
// of a matrix are numbered row by row, and the products in the middle are of matrices. Rows of left and right are the
// products, of out the blocks.
type bilinear struct {
	left, right, out [][]float64
}

// strassen is the algorithm of V. Strassen, "Gaussian elimination is not optimal", Numerische Mathematik 13, 1969.
// Winograd's form of it has fewer additions, but they are not what takes time here, and its rounding errors are
// larger.
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

// products is the number of multiplications of blocks.
func (b *bilinear) products() int64 { return int64(len(b.left)) }

// growth is how much larger rounding errors are than those of the direct sum, as the ratio of their standard
// deviations when the errors of single operations are independent: a product's terms have a variance that grows by the
// squared norms of its two combinations, and those of an output's products add up; see WinogradGrowth.
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

// combination is the sum of the terms by coefficient, those with positive ones first.
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

// combine is combination of rows of numbers, in the same order.
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

// each visits the coefficients that are not zero: positive ones, then negative ones.
func each(coefficients []float64, visit func(k int, c float64)) {
	for _, positive := range []bool{true, false} {
		for k, c := range coefficients {
			if c != 0 && (c > 0) == positive {
				visit(k, c)
			}
		}
	}
}

// halve is the extent of a half of n, whole groups of it.
func halve(n, group int64) int64 { return (n + 2*group - 1) / (2 * group) * group }
