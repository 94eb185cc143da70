package schedule

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// coefficients returns the matrix, [elements][a], of a transform.
func coefficients(t transform, elements, a int64) [][]float64 {
	m := make([][]float64, elements)
	for k := range m {
		m[k] = make([]float64, a)
		for i := range a {
			// The transform is linear: its values at the unit vectors form its matrix.
			m[k][i] = constantValue(t(int64(k), func(j int64) expr.Expr {
				if i == j {
					return expr.F(array.Float64, 1)
				}
				return expr.F(array.Float64, 0)
			}))
		}
	}
	return m
}

// constantValue evaluates an expression of constants, sums, differences and products.
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

// growth returns the ratio of a filter's rounding errors to those of the direct sum, as the ratio of standard
// deviations with independent errors: for each output, the norm of (Aᵀ row) · (norms of G's rows) · (norms of Bᵀ's
// rows) against that of the direct terms. It replaces the largest sums in the bound of Barabasz, Anderson,
// Soodhalter and Gregg, "Error Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural
// Networks", ACM TOMS 46(4), 2020, section 3, which is for the worst case, by norms. Two dimensions multiply: about
// 1.7 for F(2x2, 3x3), 8.8 for F(4x4, 3x3), and 1.2 and 3.3 with stride 2.
func (f *filter) growth() float64 {
	a := f.products()
	in, out := coefficients(f.input, a, a), coefficients(f.output, f.m, a)
	largest := 0.0
	for _, row := range out {
		sum := 0.0
		for k, c := range row {
			sum += c * c * squares(f.weights[k]) * squares(in[k])
		}
		largest = max(largest, sum/float64(f.taps))
	}
	return math.Sqrt(largest)
}

func squares(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return sum
}

// operations counts the operations of a transform with the given number of rows when shared sums are computed once;
// a multiply-add is one operation.
func (t transform) operations(rows int64) int {
	elements := expr.NewInput("elements", array.Float64, maxProducts)
	seen, count := map[string]bool{}, 0
	var visit func(e expr.Expr)
	visit = func(e expr.Expr) {
		n, ok := e.(*expr.Binary)
		name := signature(e)
		if !ok || seen[name] {
			return
		}
		seen[name] = true
		count++
		for _, c := range []expr.Expr{n.A, n.B} {
			if product, ok := c.(*expr.Binary); ok && product.Op == expr.Mul && n.Op != expr.Mul {
				c = product.A
			}
			visit(c)
		}
	}
	for k := range rows {
		visit(t(k, func(i int64) expr.Expr { return elements.At(expr.I(i)) }))
	}
	return count
}

// signature returns a string that identifies an expression of a transform.
func signature(e expr.Expr) string {
	switch n := e.(type) {
	case *expr.Binary:
		return fmt.Sprintf("(%s %s %s)", n.Op, signature(n.A), signature(n.B))
	case *expr.Float:
		return fmt.Sprint(n.Value)
	case *expr.Load:
		return fmt.Sprint("d", n.Index[0].(*expr.Int).Value)
	}
	return "?"
}
