package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// matmul is a stage matched as a matrix product: rows x inner by inner x columns.
type matmul struct {
	dtype array.DType
	// row and column are the stage's axes, inner is its reduction axis.
	row, column, inner *expr.Var
	// left and right are its two loads, constant is the index of right in Workload.Constants.
	left, right *expr.Load
	constant    int
}

// Product identifies the iterators of a stage that Strassen applies to.
type Product struct {
	// Row and Column are axis numbers.
	Row, Column int
	// Inner is the extent of the reduction.
	Inner int64
	// Constant is the right operand's index in Workload.Constants; the reduction runs along its dimension InnerDim,
	// and the columns along the other.
	Constant, InnerDim int
}

// Product matches a stage as a product that Strassen applies to; ok is false if it has another form.
func (s *Schedule) Product(stageID int) (found Product, ok bool) {
	g, err := s.stage(stageID)
	if err != nil {
		return found, false
	}
	p, err := s.matchProduct(g)
	if err != nil {
		return found, false
	}
	axis := func(v *expr.Var) int { return slices.Index(g.Axes, v) }
	return Product{Row: axis(p.row), Column: axis(p.column), Inner: p.inner.Extent, Constant: p.constant, InnerDim: wholeIndex(p.right, p.inner)}, true
}

// matchProduct matches a stage as a matrix product; the error continues "stage N".
func (s *Schedule) matchProduct(g *Stage) (*matmul, error) {
	if g.Combiner != expr.Sum || g.Tensor.DType != array.Float32 && g.Tensor.DType != array.Float64 {
		return nil, fmt.Errorf("is not a sum of floats")
	}
	loads := &conv{}
	if err := s.matchLoads(g, loads); err != nil {
		return nil, err
	}
	p := &matmul{dtype: g.Tensor.DType, left: loads.data, right: loads.weights, constant: loads.constant}
	if len(g.Axes) != 2 || len(g.Reduce) != 1 {
		return nil, fmt.Errorf("is not a product of two matrices")
	}
	p.inner = g.Reduce[0]
	for _, v := range g.Axes {
		switch inLeft, inRight := expr.Uses(p.left, v), expr.Uses(p.right, v); {
		case inLeft && !inRight:
			p.row = v
		case inRight && !inLeft:
			p.column = v
		}
	}
	if p.row == nil || p.column == nil {
		return nil, fmt.Errorf("has an axis that is not of one operand alone")
	}
	if anyLimited(p.inner, p.column) {
		return nil, fmt.Errorf("has an open axis of its constant")
	}
	for _, x := range []struct {
		load *expr.Load
		vars []*expr.Var
	}{{p.left, []*expr.Var{p.row, p.inner}}, {p.right, []*expr.Var{p.inner, p.column}}} {
		if len(x.load.Index) != 2 || wholeIndex(x.load, x.vars[0]) < 0 || wholeIndex(x.load, x.vars[1]) < 0 {
			return nil, fmt.Errorf("does not index its operands by its axes alone")
		}
	}
	return p, nil
}

// inRight returns the index of an element of the right operand.
func (p *matmul) inRight(inner, column expr.Expr) []expr.Expr {
	at := make([]expr.Expr, 2)
	at[wholeIndex(p.right, p.inner)], at[wholeIndex(p.right, p.column)] = inner, column
	return at
}
