package operators

import "github.com/tilth-dev/tilth/compiler/expr"

// matmul is a product of two inputs. Shapes are rows, columns and depth.
func matmul(batch int64, shape []int64) (*expr.Tensor, float64) {
	n, m, k := shape[0], shape[1], shape[2]
	a, b := expr.NewInput("a", float, batch, n, k), expr.NewInput("b", float, batch, k, m)
	t := expr.ReduceOver("product", expr.Sum, []int64{batch, n, m}, []int64{k}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(a.At(i[0], i[1], r[0]), b.At(i[0], r[0], i[2]))
	})
	return t, 2 * float64(batch*n*m*k)
}

// transposedProduct is the product of an attention's queries and keys. Both have the axes batch, length, heads and
// depth, and are transposed by the product. Shapes are length, heads and depth.
func transposedProduct(batch int64, shape []int64) (*expr.Tensor, float64) {
	length, heads, depth := shape[0], shape[1], shape[2]
	q, v := expr.NewInput("q", float, batch, length, heads, depth), expr.NewInput("v", float, batch, length, heads, depth)
	t := expr.ReduceOver("product", expr.Sum, []int64{batch, heads, length, length}, []int64{depth}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(q.At(i[0], i[2], i[1], r[0]), v.At(i[0], i[3], i[1], r[0]))
	})
	return t, 2 * float64(batch*heads*length*length*depth)
}

// norm is the Frobenius norm of each matrix in a batch.
func norm(batch int64, shape []int64) (*expr.Tensor, float64) {
	x := expr.NewInput("x", float, batch, shape[0], shape[1])
	sum := expr.ReduceOver("sum", expr.Sum, []int64{batch}, shape, func(i, r []expr.Expr) expr.Expr {
		e := x.At(i[0], r[0], r[1])
		return expr.MulE(e, e)
	})
	t := expr.Compute("norm", sum.Shape, func(i []expr.Expr) expr.Expr { return expr.Un(expr.Sqrt, sum.At(i...)) })
	return t, 2 * float64(batch*shape[0]*shape[1])
}
