package schedule

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Sums selects when the sums of the constant operand of Strassen's algorithm are computed.
type Sums uint8

const (
	// Compiled sums are computed in double precision at compile time, and take 7/4 of the constant's space.
	Compiled Sums = iota
	// Computed sums are a stage of the schedule that reads the constant.
	Computed
)

// algorithm returns the name of the algorithm with these sums.
func (s Sums) algorithm() string {
	if s == Computed {
		return "Strassen+sums"
	}
	return "Strassen"
}

// leftSums reads the activation: block 2a+b holds rows a, a+2, a+4 and so on of half b of the reduction, zeros beyond.
func (q *quartering) leftSums() *expr.Tensor {
	left := expr.Compute("left", []int64{strassen.products(), q.m, q.k}, func(i []expr.Expr) expr.Expr {
		return choose(i[0], strassen.products(), func(p int64) expr.Expr {
			return combination(strassen.left[p], func(block int64) expr.Expr {
				row, inner := expr.AddE(expr.MulE(i[1], expr.I(2)), expr.I(block/2)), expr.AddE(i[2], expr.I(block%2*q.k))
				load := expr.To(q.p.dtype, expr.Substitute(q.p.left, map[*expr.Var]expr.Expr{q.p.row: row, q.p.inner: inner}))
				inside := expr.Both(below(row, q.p.row, 2*q.m), below(inner, q.p.inner, 2*q.k))
				return where(expr.Both(inside, q.p.row.Within(row)), load)
			})
		})
	})
	left.Axes[1].Limit = q.limit()
	return left
}

// limit returns the limit of block rows, or nil if all exist.
func (q *quartering) limit() expr.Expr {
	if q.p.row.Limit == nil {
		return nil
	}
	return expr.Simplify(expr.Bin(expr.FloorDiv, expr.AddE(q.p.row.Limit, expr.I(1)), expr.I(2)))
}

// transform returns the sums of the constant: block 2a+b holds half a of the reduction and every second group of
// columns from b on, zeros beyond. They are computed in double precision and rounded once.
func (q *quartering) transform() *Transform {
	source := expr.NewConstant("right", q.p.right.DType(), q.p.right.Tensor.Shape...)
	sums := q.rightSums(source, array.Float64)
	return &Transform{Source: source, Result: sums, quartered: true, compute: q.sums}
}

// rightSums returns the sums of a constant, computed in the given type and rounded once.
func (q *quartering) rightSums(source *expr.Tensor, d array.DType) *expr.Tensor {
	group := expr.I(q.group)
	return expr.Compute("sums", []int64{strassen.products(), q.k, q.n}, func(i []expr.Expr) expr.Expr {
		pair := expr.MulE(expr.Bin(expr.FloorDiv, i[2], group), expr.I(2*q.group))
		first := expr.AddE(pair, expr.Bin(expr.FloorMod, i[2], group))
		sum := choose(i[0], strassen.products(), func(p int64) expr.Expr {
			return combination(strassen.right[p], func(block int64) expr.Expr {
				inner, column := expr.AddE(i[1], expr.I(block/2*q.k)), expr.AddE(first, expr.I(block%2*q.group))
				load := expr.To(d, source.At(q.p.inRight(inner, column)...))
				return where(expr.Both(below(inner, q.p.inner, 2*q.k), below(column, q.p.column, 2*q.n)), load)
			})
		})
		return expr.To(q.p.dtype, sum)
	})
}

// sums returns bitwise the result of transform's workload.
func (q *quartering) sums(source *array.Array) *array.Array {
	result := array.New(q.p.dtype, strassen.products(), q.k, q.n)
	perInner, perColumn := q.p.column.Extent, int64(1)
	if wholeIndex(q.p.right, q.p.column) == 0 {
		perInner, perColumn = 1, q.p.inner.Extent
	}
	row := make([]float64, q.n)
	for at := range strassen.products() * q.k {
		p, r := at/q.k, at%q.k
		combine(row, strassen.right[p], func(block, c int64) float64 {
			inner, column := r+block/2*q.k, c/q.group*2*q.group+c%q.group+block%2*q.group
			if inner >= q.p.inner.Extent || column >= q.p.column.Extent {
				return 0
			}
			return source.Float(inner*perInner + column*perColumn)
		})
		for c, v := range row {
			result.SetFloat(at*q.n+int64(c), v)
		}
	}
	return result
}
