package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// blockProduct is a stage understood as a product of rows with weights that are quantised by blocks:
//
//	sum over inner of data * ((code - zero) * scale)
//
// where code is a byte, with or without a sign, or half of one, of a constant that lies inner by column, and the scale
// and the zero point are the same for a block of neighbours along inner.
type blockProduct struct {
	// rows are the stage's axes but for the column, inner is its reduction's.
	rows          []*expr.Var
	column, inner *expr.Var
	// data is the operand in float32, or its cast.
	data expr.Expr
	// weights loads the constant, whose index in Workload.Constants is constant; two codes share a byte with nibbles.
	weights  *expr.Load
	constant int
	nibbles  bool
	// scale is in float32. zero is subtracted from codes in float32, nil where nothing is.
	scale, zero expr.Expr
	// block is how many neighbours along inner have one scale and one zero point.
	block int64
}

// BlockProduct says what a product with weights in blocks is made of, where Blockwise applies to it.
type BlockProduct struct {
	// Column is the number of the axis of the columns.
	Column int
	// Inner is the extent of the reduction, Block the neighbours that have one scale.
	Inner, Block int64
	// Group is how many neighbours of a row are quantised with one step, where data is.
	Group int64
	// Constant is the codes' index in Workload.Constants; Nibbles is set where two share a byte.
	Constant int
	Nibbles  bool
	// Parameters are the constants among scales and zero points, by their index, with the dimension that columns run
	// along.
	Parameters []BlockParameter
	// Shifted is set where codes have a zero point other than zero.
	Shifted bool
}

// BlockParameter is a constant with an element a block and column.
type BlockParameter struct{ Constant, ColumnDim int }

// BlockProduct understands a stage as a product with weights in blocks; ok is false when it is none.
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
		Constant: p.constant, Nibbles: p.nibbles, Shifted: p.zero != nil}
	for _, l := range p.parameters() {
		if l.Tensor.Role == expr.Constant {
			found.Parameters = append(found.Parameters, BlockParameter{s.Constant(l.Tensor), slices.Index(l.Index, expr.Expr(p.column))})
		}
	}
	return found, true
}

// parameters are the loads of scales and zero points.
func (p *blockProduct) parameters() []*expr.Load {
	list := expr.Loads(p.scale)
	if p.zero != nil {
		list = append(list, expr.Loads(p.zero)...)
	}
	return list
}

// matchBlocks understands a stage; the error continues "stage N".
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
		return nil, fmt.Errorf("has codes that are no constant")
	}
	if err := p.matchAxes(g); err != nil {
		return nil, err
	}
	return p, p.matchBlock()
}

// matchFactors takes the body apart.
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
	if _, ok := element(p.data); !ok {
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

// signed reports whether codes are bytes with a sign.
func (p *blockProduct) signed() bool { return p.weights.Tensor.DType == array.Int8 }

// isParameter reports whether an expression is a number, or an element of a tensor, cast or not.
func isParameter(e expr.Expr) bool {
	if _, ok := e.(*expr.Float); ok {
		return true
	}
	_, ok := element(e)
	return ok
}

// multiplied are the factors of a product.
func multiplied(e expr.Expr) (a, b expr.Expr, ok bool) {
	n, ok := e.(*expr.Binary)
	if !ok || n.Op != expr.Mul {
		return nil, nil, false
	}
	return n.A, n.B, true
}

// matchAxes finds the column, which data does not depend on, and checks the index of the codes.
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

// matchBlock finds the extent of a block in the indices of scales and zero points.
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
		return fmt.Errorf("has %d terms, which are no whole blocks of %d", p.inner.Extent, p.block)
	}
	return nil
}

// blockOf is the extent of the blocks that a scale or zero point is loaded for: all terms where it does not depend on
// them.
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

// group is how many neighbours of a row are quantised with one step: 32, or a block that is no multiple of that and
// not much larger; 0 where there is no such number.
func (p *blockProduct) group() int64 {
	const usual, most = 32, 64
	switch {
	case p.block%usual == 0:
		return usual
	case p.block <= most && p.block%p.step() == 0:
		return p.block
	}
	return 0
}

// step is how many codes of a column lie in four neighbouring bytes, which an instruction multiplies.
func (p *blockProduct) step() int64 {
	if p.nibbles {
		return 2 * dotTerms
	}
	return dotTerms
}

// dotTerms is how many bytes of either operand an instruction multiplies and adds up.
const dotTerms = 4
