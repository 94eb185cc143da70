package schedule

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// StrassenStages are the numbers of the stages that replace a product of M x K by K x N elements. Halves have m = M/2, k = K/2 and
// n = N/2 elements, rounded up, n to whole groups.
type StrassenStages struct {
	// Left [7, m, k] has the sums of blocks of the left operand.
	Left int
	// Product [7, m, n] = sum over k of Left * Right, a product of matrices for each of the seven.
	Product int
}

// maxStrassenElements bounds each stage that Strassen adds.
const maxStrassenElements = 1 << 31

// Strassen computes a product of matrices by seven products of matrices with half as many rows and columns, in place of eight. The
// stage must be the sum, over one axis, of the product of an activation, indexed by the first of the stage's two axes and the
// reduction's, and a constant, indexed by the reduction's and the second; it becomes a map that reads Product. Blocks are not
// quarters: the rows of a block are every second one, its columns every second group of columns. What is computed together then lies
// together, whatever the extents. The constant's place is taken by its sums Right [7, k, n], which are 7/4 as large: Pack lays them
// out. It must come before other primitives on the stage and the constant.
//
// Sums are of other terms than in the direct product, with larger rounding errors; see StrassenGrowth.
func (s *Schedule) Strassen(stageID int, group int64) (StrassenStages, error) {
	g, err := s.stage(stageID)
	if err != nil {
		return StrassenStages{}, fmt.Errorf("strassen: %w", err)
	}
	if group < 1 || group > maxSkew {
		return StrassenStages{}, fmt.Errorf("strassen: a group of %d columns is not between 1 and %d", group, maxSkew)
	}
	if s.scheduled(g) {
		return StrassenStages{}, fmt.Errorf("strassen: stage %d was already scheduled", stageID)
	}
	p, err := s.matchProduct(g)
	if err != nil {
		return StrassenStages{}, fmt.Errorf("strassen: stage %d %w", stageID, err)
	}
	q := newQuartering(p, group)
	if err := q.check(); err != nil {
		return StrassenStages{}, fmt.Errorf("strassen: stage %d %w", stageID, err)
	}
	add := func(x *expr.Tensor) int {
		s.addStage(&Stage{Tensor: x, Axes: x.Axes, Reduce: x.Reduce, Combiner: x.Combiner, Body: x.Body})
		return len(s.Stages) - 1
	}
	right := q.transform()
	s.Transforms[p.constant] = right
	s.algorithms = append(s.algorithms, algorithm{"Strassen", StrassenGrowth()})
	left := q.leftSums()
	product := q.product(left, right.Tensor)
	ids := StrassenStages{Left: add(left), Product: add(product)}
	g.Reduce, g.Combiner, g.Body = nil, expr.None, q.output(product)
	g.resetNest()
	s.record("strassen", stageID, int(group))
	return ids, nil
}

// StrassenGrowth is how much larger the rounding errors of Strassen's algorithm are than those of the direct sum, as the ratio of
// their standard deviations: about 2.4.
func StrassenGrowth() float64 { return strassen.growth() }

// quartering is how a product is cut into blocks.
type quartering struct {
	p *matmul
	// group is how many columns next to one another belong to the same block.
	group int64
	// m, k and n are the extents of a block.
	m, k, n int64
}

func newQuartering(p *matmul, group int64) *quartering {
	return &quartering{p: p, group: group, m: halve(p.row.Extent, 1), k: halve(p.inner.Extent, 1), n: halve(p.column.Extent, group)}
}

func (q *quartering) check() error {
	for _, shape := range [][2]int64{{q.m, q.k}, {q.k, q.n}, {q.m, q.n}} {
		if shape[0] > maxStrassenElements/strassen.products()/shape[1] {
			return fmt.Errorf("is too large: its sums would have more than %d elements", int64(maxStrassenElements))
		}
	}
	return nil
}

// leftSums reads the activation: block 2a+b has rows a, a+2, a+4 and so on of half b of the reduction, zeros beyond.
func (q *quartering) leftSums() *expr.Tensor {
	return expr.Compute("left", []int64{strassen.products(), q.m, q.k}, func(i []expr.Expr) expr.Expr {
		return choose(i[0], strassen.products(), func(p int64) expr.Expr {
			return combination(strassen.left[p], func(block int64) expr.Expr {
				row, inner := expr.AddE(expr.MulE(i[1], expr.I(2)), expr.I(block/2)), expr.AddE(i[2], expr.I(block%2*q.k))
				load := expr.Substitute(q.p.left, map[*expr.Var]expr.Expr{q.p.row: row, q.p.inner: inner})
				inside := both(below(row, q.p.row, 2*q.m), below(inner, q.p.inner, 2*q.k))
				return where(inside, load)
			})
		})
	})
}

// transform is the sums of the constant: block 2a+b has half a of the reduction, of every second group of columns those from b on,
// zeros beyond. They are computed in double and rounded once.
func (q *quartering) transform() *Transform {
	source, group := expr.NewConstant("right", q.p.dtype, q.p.right.Tensor.Shape...), expr.I(q.group)
	shape := []int64{strassen.products(), q.k, q.n}
	sums := expr.Compute("sums", shape, func(i []expr.Expr) expr.Expr {
		pair := expr.MulE(expr.Bin(expr.FloorDiv, i[2], group), expr.I(2*q.group))
		first := expr.AddE(pair, expr.Bin(expr.FloorMod, i[2], group))
		sum := choose(i[0], strassen.products(), func(p int64) expr.Expr {
			return combination(strassen.right[p], func(block int64) expr.Expr {
				inner, column := expr.AddE(i[1], expr.I(block/2*q.k)), expr.AddE(first, expr.I(block%2*q.group))
				load := expr.To(array.Float64, source.At(q.p.inRight(inner, column)...))
				return where(both(below(inner, q.p.inner, 2*q.k), below(column, q.p.column, 2*q.n)), load)
			})
		})
		return expr.To(q.p.dtype, sum)
	})
	return &Transform{Source: source, Result: sums, Tensor: expr.NewConstant("sums", q.p.dtype, shape...), quartered: true, compute: q.sums}
}

// sums is what transform's workload computes, to the bit.
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

func (q *quartering) product(left, right *expr.Tensor) *expr.Tensor {
	return expr.ReduceOver("product", expr.Sum, []int64{strassen.products(), q.m, q.n}, []int64{q.k}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(left.At(i[0], i[1], r[0]), right.At(i[0], r[0], i[2]))
	})
}

// output is the product's element, put together in its block.
func (q *quartering) output(product *expr.Tensor) expr.Expr {
	group := expr.I(q.group)
	row := expr.Bin(expr.FloorDiv, q.p.row, expr.I(2))
	pair := expr.Bin(expr.FloorDiv, q.p.column, expr.I(2*q.group))
	column := expr.AddE(expr.MulE(pair, group), expr.Bin(expr.FloorMod, q.p.column, group))
	side := expr.Bin(expr.FloorMod, expr.Bin(expr.FloorDiv, q.p.column, group), expr.I(2))
	return choose(expr.Bin(expr.FloorMod, q.p.row, expr.I(2)), 2, func(a int64) expr.Expr {
		return choose(side, 2, func(b int64) expr.Expr {
			return combination(strassen.out[2*a+b], func(p int64) expr.Expr { return product.At(expr.I(p), row, column) })
		})
	})
}

// below is the condition that an index lies within an axis; nil when all indices up to the limit do.
func below(index expr.Expr, axis *expr.Var, limit int64) expr.Expr {
	if limit <= axis.Extent {
		return nil
	}
	return expr.Bin(expr.Lt, index, expr.I(axis.Extent))
}

// both is the conjunction of conditions, nil for those that always hold.
func both(a, b expr.Expr) expr.Expr {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	return expr.Bin(expr.And, a, b)
}

// where is a value where the condition holds, and zero elsewhere; a nil condition always holds.
func where(condition, value expr.Expr) expr.Expr {
	if condition == nil {
		return value
	}
	return expr.Sel(condition, value, expr.Zero(value.DType()))
}
