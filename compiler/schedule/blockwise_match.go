package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// blockProduct is a stage matched as a product of rows with block-quantised weights:
//
//	sum over inner of data * ((code - zero) * scale)
//
// Each code is a signed or unsigned byte, or half of one, of a constant with dimensions inner and column. A block
// of neighbours along inner shares the scale and the zero point.
type blockProduct struct {
	// rows lists the stage's axes except the column; inner is its reduction axis.
	rows          []*expr.Var
	column, inner *expr.Var
	// data is the operand in float32, or cast to it.
	data expr.Expr
	// weights loads the constant with index constant in Workload.Constants. With nibbles, two codes share a byte.
	weights  *expr.Load
	constant int
	nibbles  bool
	// scale is in float32. zero is subtracted from codes in float32; it is nil if there is no zero point.
	scale, zero expr.Expr
	// block is the number of neighbours along inner that share a scale and a zero point.
	block int64
}

// BlockProduct describes a stage that Blockwise applies to.
type BlockProduct struct {
	// Column is the number of the column axis.
	Column int
	// Inner is the extent of the reduction, Block the number of neighbours that share a scale.
	Inner, Block int64
	// Group is the number of neighbours in a row of data that are quantised with one scale.
	Group int64
	// Constant is the index of the codes in Workload.Constants; Nibbles is set if two codes share a byte.
	Constant int
	Nibbles  bool
	// Parameters lists the constant scales and zero points with their column dimensions.
	Parameters []BlockParameter
}

// BlockParameter is a constant with one element per block and column.
type BlockParameter struct{ Constant, ColumnDim int }

// BlockProduct matches a stage as a product with block-quantised weights; ok is false if it has another form.
func (s *Schedule) BlockProduct(stageID int) (found BlockProduct, ok bool) {
	g, err := s.stage(stageID)
	if err != nil {
		return found, false
	}
	p, err := s.matchBlocks(g)
	if err != nil {
		return found, false
	}
	found = BlockProduct{Column: slices.Index(g.Axes, p.column), Inner: p.inner.Extent, Block: p.block, Group: p.group(),
		Constant: p.constant, Nibbles: p.nibbles}
	for _, l := range p.parameters() {
		if l.Tensor.Role == expr.Constant {
			found.Parameters = append(found.Parameters, BlockParameter{s.Constant(l.Tensor), slices.Index(l.Index, expr.Expr(p.column))})
		}
	}
	return found, true
}

// parameters returns the loads of scales and zero points.
func (p *blockProduct) parameters() []*expr.Load {
	list := expr.Loads(p.scale)
	if p.zero != nil {
		list = append(list, expr.Loads(p.zero)...)
	}
	return list
}

// matchBlocks matches a stage; the error continues "stage N".
func (s *Schedule) matchBlocks(g *Stage) (*blockProduct, error) {
	if g.Combiner != expr.Sum || g.Tensor.DType != array.Float32 || len(g.Reduce) != 1 || len(g.Axes) == 0 {
		return nil, fmt.Errorf("is not a sum in float32 over one axis")
	}
	if anyLimited(g.Reduce...) {
		return nil, fmt.Errorf("sums over an open axis")
	}
	p := &blockProduct{inner: g.Reduce[0]}
	if !p.matchFactors(g.Body) {
		return nil, fmt.Errorf("is not the product of data with codes that are scaled")
	}
	if p.constant = s.Constant(p.weights.Tensor); p.constant < 0 {
		return nil, fmt.Errorf("has codes that are not constant")
	}
	if err := p.matchAxes(g); err != nil {
		return nil, err
	}
	return p, p.matchBlock()
}

// matchFactors matches the body.
func (p *blockProduct) matchFactors(body expr.Expr) bool {
	data, weight, ok := multiplied(body)
	if !ok {
		return false
	}
	code, scale, ok := multiplied(weight)
	if !ok {
		return false
	}
	p.data, p.scale = data, scale
	if n, ok := code.(*expr.Binary); ok && n.Op == expr.Sub {
		code, p.zero = n.A, n.B
	}
	if !isParameter(p.scale) || p.zero != nil && !isParameter(p.zero) {
		return false
	}
	cast, ok := code.(*expr.Cast)
	if !ok || cast.Type != array.Float32 {
		return false
	}
	if _, ok := ElementOf(p.data); !ok {
		return false
	}
	loads := expr.Loads(cast.A)
	if len(loads) == 0 || len(loads[0].Index) != 2 {
		return false
	}
	p.weights = loads[0]
	switch p.weights.Tensor.DType {
	case array.Int8:
		return cast.A == expr.Expr(p.weights)
	case array.Uint8:
		p.nibbles = expr.Same(cast.A, expr.Nibble(p.weights, p.inner))
		return p.nibbles || cast.A == expr.Expr(p.weights)
	}
	return false
}

// signed reports whether codes are signed bytes.
func (p *blockProduct) signed() bool { return p.weights.Tensor.DType == array.Int8 }

// isParameter reports whether an expression is a number or an element of a tensor, possibly cast.
func isParameter(e expr.Expr) bool {
	if _, ok := e.(*expr.Float); ok {
		return true
	}
	_, ok := ElementOf(e)
	return ok
}

// multiplied returns the factors of a product.
func multiplied(e expr.Expr) (a, b expr.Expr, ok bool) {
	n, ok := e.(*expr.Binary)
	if !ok || n.Op != expr.Mul {
		return nil, nil, false
	}
	return n.A, n.B, true
}

// matchAxes finds the column axis, which data does not depend on, and checks the index of the codes.
func (p *blockProduct) matchAxes(g *Stage) error {
	column, ok := p.weights.Index[1].(*expr.Var)
	at := slices.Index(g.Axes, column)
	row := expr.Expr(p.inner)
	if p.nibbles {
		row = expr.Bin(expr.FloorDiv, p.inner, expr.I(2))
	}
	if !ok || at < 0 || !expr.Same(p.weights.Index[0], row) || expr.Uses(p.data, column) || !expr.Uses(p.data, p.inner) {
		return fmt.Errorf("does not multiply rows of data with columns of codes")
	}
	p.column = column
	for k, v := range g.Axes {
		if k != at {
			p.rows = append(p.rows, v)
		}
	}
	return nil
}

// matchBlock derives the block extent from the indices of scales and zero points.
func (p *blockProduct) matchBlock() error {
	p.block = p.inner.Extent
	for k, l := range p.parameters() {
		block, err := p.blockOf(l)
		if err != nil {
			return err
		}
		if k > 0 && p.block != block {
			return fmt.Errorf("has blocks of %d and of %d", p.block, block)
		}
		p.block = block
	}
	if p.inner.Extent%p.block != 0 {
		return fmt.Errorf("has %d terms, which are not whole blocks of %d", p.inner.Extent, p.block)
	}
	return nil
}

// blockOf returns the block extent of a scale or zero point: all terms if it does not depend on them.
func (p *blockProduct) blockOf(l *expr.Load) (int64, error) {
	block := p.inner.Extent
	for _, x := range l.Index {
		switch n := x.(type) {
		case *expr.Int:
		case *expr.Var:
			if n == p.column {
				continue
			}
			if n != p.inner {
				return 0, fmt.Errorf("has scales for each row")
			}
			block = 1
		case *expr.Binary:
			size, ok := n.B.(*expr.Int)
			if !ok || n.Op != expr.FloorDiv || n.A != expr.Expr(p.inner) || size.Value < 1 {
				return 0, fmt.Errorf("has scales that belong to no block")
			}
			block = size.Value
		default:
			return 0, fmt.Errorf("has scales that belong to no block")
		}
	}
	return block, nil
}

// group returns the number of neighbours in a row that are quantised with one scale: 32, or a block size that is
// not a multiple of 32 and not much larger; 0 if no size fits.
func (p *blockProduct) group() int64 {
	const usual, limit = 32, 64
	switch {
	case p.block%usual == 0:
		return usual
	case p.block <= limit && p.block%p.step() == 0:
		return p.block
	}
	return 0
}

// step returns the number of a column's codes in four consecutive bytes, which one instruction multiplies.
func (p *blockProduct) step() int64 {
	if p.nibbles {
		return 2 * dotTerms
	}
	return dotTerms
}

// dotTerms is the number of bytes per operand that an instruction multiplies and accumulates.
const dotTerms = 4
