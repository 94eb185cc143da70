package schedule

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// StrassenStages holds the numbers of the stages that replace a product of M x K by K x N elements. Halves have m =
// M/2, k = K/2 and n = N/2 elements, rounded up, n to whole groups.
type StrassenStages struct {
	// Left [7, m, k] holds the sums of blocks of the left operand.
	Left int
	// Right [7, k, n] holds the sums of blocks of the right operand; -1 if they are compiled.
	Right int
	// Product [7, m, n] = sum over k of Left * Right: seven matrix products.
	Product int
}

// maxStrassenElements limits the size of each stage that Strassen adds.
const maxStrassenElements = 1 << 31

// Strassen computes a matrix product by seven half-size products in place of eight. The stage must be the sum, over
// one axis, of the product of an activation, indexed by the first of the stage's two axes and the reduction axis,
// and a constant, indexed by the reduction axis and the second; it becomes a map that reads Product. A block is not
// a quarter: it takes every second row and every second group of columns, so that elements computed together are
// adjacent for any extents. Compiled sums [7, k, n] replace the constant, and Pack sets their layout; with computed
// sums it sets the layout of the constant itself. Strassen must precede other primitives on the stage and the
// constant.
//
// The sums differ from those of the direct product and have larger rounding errors; see StrassenGrowth.
func (s *Schedule) Strassen(stageID int, group int64, sums Sums) (ids StrassenStages, err error) {
	args := []int{int(group)}
	if sums == Computed {
		args = append(args, int(sums))
	}
	err = s.replace("strassen", stageID, args, func(g *Stage) error {
		q, err := s.quartered(g, group)
		if err != nil {
			return err
		}
		ids.Left, ids.Right = s.added(q.leftSums()).ID, -1
		left, right := s.Stages[ids.Left].Tensor, (*expr.Tensor)(nil)
		if sums == Computed {
			right = q.rightSums(s.Workload.Constants[q.p.constant], q.p.dtype)
			ids.Right = s.added(right).ID
		} else {
			right = s.transform(q.p.constant, q.transform())
		}
		product := q.product(left, right)
		ids.Product = s.added(product).ID
		g.Reduce, g.Combiner, g.Body = nil, expr.None, q.output(product)
		g.resetNest()
		s.algorithms = append(s.algorithms, algorithm{sums.algorithm(), Default, StrassenGrowth(), 7.0 / 8})
		return nil
	})
	return ids, err
}

// quartered matches a stage that Strassen applies to, or returns an error.
func (s *Schedule) quartered(g *Stage, group int64) (*quartering, error) {
	if group < 1 || group > maxGap {
		return nil, fmt.Errorf("a group of %d columns is not between 1 and %d", group, maxGap)
	}
	p, err := s.matchProduct(g)
	if err != nil {
		return nil, fmt.Errorf("stage %d %w", g.ID, err)
	}
	q := &quartering{p: p, group: group, m: halve(p.row.Extent, 1), k: halve(p.inner.Extent, 1), n: halve(p.column.Extent, group)}
	if err := q.check(); err != nil {
		return nil, fmt.Errorf("stage %d %w", g.ID, err)
	}
	return q, nil
}

// StrassenGrowth returns the ratio of the standard deviations of the rounding errors of Strassen's algorithm and of
// the direct sum: about 2.4.
func StrassenGrowth() float64 { return strassen.growth() }

// quartering describes how a product is divided into blocks.
type quartering struct {
	p *matmul
	// group is the number of adjacent columns that belong to the same block.
	group int64
	// m, k and n are the extents of a block.
	m, k, n int64
}

func (q *quartering) check() error {
	for _, shape := range [][2]int64{{q.m, q.k}, {q.k, q.n}, {q.m, q.n}} {
		if shape[0] > maxStrassenElements/strassen.products()/shape[1] {
			return fmt.Errorf("is too large: its sums would have more than %d elements", int64(maxStrassenElements))
		}
	}
	return nil
}

func (q *quartering) product(left, right *expr.Tensor) *expr.Tensor {
	product := expr.ReduceOver("product", expr.Sum, []int64{strassen.products(), q.m, q.n}, []int64{q.k}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(left.At(i[0], i[1], r[0]), right.At(i[0], r[0], i[2]))
	})
	product.Axes[1].Limit = q.limit()
	return product
}

// output returns an element of the product, assembled within its block.
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

// below returns the condition that an index lies within an axis, or nil if all indices up to the limit do.
func below(index expr.Expr, axis *expr.Var, limit int64) expr.Expr {
	if limit <= axis.Extent {
		return nil
	}
	return expr.Bin(expr.Lt, index, expr.I(axis.Extent))
}

// where returns value if the condition holds, and zero otherwise; a nil condition always holds.
func where(condition, value expr.Expr) expr.Expr {
	if condition == nil {
		return value
	}
	return expr.Sel(condition, value, expr.Zero(value.DType()))
}
