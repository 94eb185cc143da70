package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// BlockForm selects how a product with block-quantised weights is computed.
type BlockForm uint8

const (
	// BlockFloats casts codes to float32, multiplies them with the data, and scales the sum of each block.
	BlockFloats BlockForm = iota
	// BlockIntegers quantises data to 8 bits with one scale per group of neighbours, and scales integer sums.
	BlockIntegers
)

// BlockwiseStages holds the numbers of the stages that compute a product with block-quantised weights, or -1 if a
// stage does not exist. Rows stands for all axes but the columns, G for the groups of a row.
type BlockwiseStages struct {
	// Peak [Rows, G] holds the largest magnitude of each group, Inverse [Rows, G] the factor applied to its elements.
	Peak, Inverse int
	// Data [Rows, G, group] holds the data in 8 bits.
	Data int
	// Total [Rows, G] holds the sum of each group of Data, Offset [Rows, G] the factor of the zero point.
	Total, Offset int
	// Weights [steps, 2, 4 N] holds the two halves of each byte.
	Weights int
	// Partial [Rows, G, N] holds the sums of products of each group.
	Partial int
}

// maxBlockElements limits the size of each stage that Blockwise adds.
const maxBlockElements = 1 << 31

// integerBlocks describes BlockIntegers as an algorithm: rounding to 8 bits has an error of up to 1/254 of the
// group's largest element, and the errors of many terms partly cancel.
var integerBlocks = algorithm{"INT8", Fast, 1 << 12, 1}

// Blockwise computes a product with block-quantised weights as sums over blocks that are scaled once each. The
// stage must be the sum over one axis of data times (code - zero) * scale. Codes are bytes of a constant, or halves
// of bytes extracted by expr.Nibble, and neighbours along the axis share a scale and a zero point. The stage
// becomes the sum over blocks. Codes get a new layout, for Pack. With BlockIntegers, [steps, 4 N] holds four bytes
// for each column that are multiplied at once: low halves hold those of four neighbours, high halves those of the
// next four, and signed codes are offset by 128. With BlockFloats, halves form words of eight neighbours [steps,
// N]. Blockwise must precede other primitives on the stage and the constant. BlockIntegers requires fast numerics.
func (s *Schedule) Blockwise(stageID int, form BlockForm) (made BlockwiseStages, err error) {
	err = s.replace("blockwise", stageID, []int{int(form)}, func(g *Stage) error {
		if form > BlockIntegers {
			return fmt.Errorf("%d is not a form", form)
		}
		p, err := s.matchBlocks(g)
		if err != nil {
			return fmt.Errorf("stage %d %w", stageID, err)
		}
		if err := s.transformable(g, p.weights.Tensor); err != nil {
			return err
		}
		b := &blockwise{blockProduct: p, s: s, form: form, size: p.block}
		if form == BlockIntegers {
			b.size = p.group()
		}
		if err := b.check(g); err != nil {
			return fmt.Errorf("stage %d %w", stageID, err)
		}
		made = b.apply(g)
		return nil
	})
	return made, err
}

// blockwise computes a product block by block.
type blockwise struct {
	*blockProduct
	s    *Schedule
	form BlockForm
	// size is the number of terms in a partial sum, groups the number of partial sums in a row.
	size, groups int64
	columns      int64
	shape        []int64
	made         BlockwiseStages
}

// check computes the extents of the stages and checks them.
func (b *blockwise) check(g *Stage) error {
	if b.size == 0 || b.size%b.step() != 0 && (b.nibbles || b.form == BlockIntegers) {
		return fmt.Errorf("has blocks of %d, which are not a multiple of %d", b.block, b.step())
	}
	b.groups, b.columns = b.inner.Extent/b.size, b.column.Extent
	elements := max(b.inner.Extent, b.groups*b.columns)
	for _, v := range b.rows {
		b.shape = append(b.shape, v.Extent)
		if elements *= v.Extent; elements > maxBlockElements {
			return fmt.Errorf("is too large: its sums are more than %d", int64(maxBlockElements))
		}
	}
	if expr.Size(g.Body) > maxBodyNodes/8 {
		return fmt.Errorf("has a body that is too large")
	}
	return nil
}

func (b *blockwise) apply(g *Stage) BlockwiseStages {
	b.made = BlockwiseStages{-1, -1, -1, -1, -1, -1, -1}
	var weights *expr.Tensor
	if b.form == BlockIntegers || b.nibbles {
		weights = b.layOut(g)
	}
	if b.form == BlockFloats {
		partial := b.partialFloats(weights)
		b.made.Partial = b.s.added(partial).ID
		b.finish(g, func(row []expr.Expr, group, column expr.Expr) expr.Expr {
			return b.at(b.scale, nil, group, column, partial.At(slices.Concat(row, []expr.Expr{group, column})...))
		})
		return b.made
	}
	if b.signed() {
		b.shiftZero()
	}
	b.integers(g, weights)
	b.s.algorithms = append(b.s.algorithms, integerBlocks)
	return b.made
}

// finish turns the stage into the sum of term over groups.
func (b *blockwise) finish(g *Stage, term func(row []expr.Expr, group, column expr.Expr) expr.Expr) {
	group := &expr.Var{Name: b.inner.Name, Extent: b.groups}
	g.Reduce, g.Body = []*expr.Var{group}, term(expr.Exprs(b.rows), group, b.column)
	g.resetNest()
}

// at returns an expression of the stage for the first term of a group, times a value; nil stands for no expression.
func (b *blockwise) at(e expr.Expr, row []expr.Expr, group, column, times expr.Expr) expr.Expr {
	e = b.substituted(e, row, expr.MulE(group, expr.I(b.size)), column)
	if times != nil {
		e = expr.MulE(times, e)
	}
	return e
}

// substituted returns an expression of the stage at another position; a nil row keeps the row axes.
func (b *blockwise) substituted(e expr.Expr, row []expr.Expr, inner, column expr.Expr) expr.Expr {
	values := map[*expr.Var]expr.Expr{b.inner: inner}
	if column != nil {
		values[b.column] = column
	}
	for k, x := range row {
		values[b.rows[k]] = x
	}
	return expr.Rewrite(expr.Substitute(e, values), func(x expr.Expr) expr.Expr {
		if l, ok := x.(*expr.Load); ok {
			return simplifiedIndex(l)
		}
		return x
	})
}

// simplifiedIndex returns a load with simplified indices.
func simplifiedIndex(l *expr.Load) expr.Expr {
	index := make([]expr.Expr, len(l.Index))
	for k, x := range l.Index {
		index[k] = expr.Simplify(x)
	}
	return l.Tensor.At(index...)
}

// partialFloats returns the block sums in float32.
func (b *blockwise) partialFloats(words *expr.Tensor) *expr.Tensor {
	rank := len(b.rows)
	extents := []int64{b.size}
	if b.nibbles {
		extents = []int64{b.size / b.step(), b.step()}
	}
	return expr.ReduceOver("partial", expr.Sum, slices.Concat(b.shape, []int64{b.groups, b.columns}), extents, func(i, r []expr.Expr) expr.Expr {
		group, column, within := i[rank], i[rank+1], r[0]
		if b.nibbles {
			within = expr.AddE(expr.MulE(r[0], expr.I(b.step())), r[1])
		}
		inner := expr.AddE(expr.MulE(group, expr.I(b.size)), within)
		var code expr.Expr
		if b.nibbles {
			steps := b.size / b.step()
			word := words.At(expr.AddE(expr.MulE(group, expr.I(steps)), r[0]), column)
			code = choose(r[1], b.step(), func(k int64) expr.Expr { return nibbleOf(word, k) })
		} else {
			code = b.weights.Tensor.At(inner, column)
		}
		value := expr.To(array.Float32, code)
		if b.zero != nil {
			value = expr.SubE(value, b.at(b.zero, i[:rank], group, column, nil))
		}
		return expr.MulE(b.substituted(b.data, i[:rank], inner, nil), value)
	})
}

// nibbleOf returns one of the eight codes in a word.
func nibbleOf(word expr.Expr, k int64) expr.Expr {
	if k > 0 {
		word = expr.Bin(expr.ShiftRight, word, &expr.Int{Value: 4 * k, Type: array.Int32})
	}
	return expr.Bin(expr.And, word, &expr.Int{Value: 15, Type: array.Int32})
}

// signShift is added to signed codes, and to their zero points, where they are multiplied by signed data.
const signShift = 128

// shiftZero adjusts the zero point to unsigned codes.
func (b *blockwise) shiftZero() {
	shift := expr.F(array.Float32, signShift)
	switch z := b.zero.(type) {
	case nil:
		b.zero = shift
	case *expr.Float:
		b.zero = expr.F(array.Float32, z.Value+signShift)
	default:
		b.zero = expr.AddE(z, shift)
	}
}

// integers adds the stages that quantise data and sum integer products, and rewrites the stage to scale them.
func (b *blockwise) integers(g *Stage, weights *expr.Tensor) {
	rank := len(b.rows)
	perGroup := slices.Concat(b.shape, []int64{b.groups})
	value := func(i []expr.Expr, t expr.Expr) expr.Expr {
		return expr.To(array.Float32, b.substituted(b.data, i[:rank], expr.AddE(expr.MulE(i[rank], expr.I(b.size)), t), nil))
	}
	const steps = 127
	peak := expr.ReduceOver("peak", expr.Maximum, perGroup, []int64{b.size}, func(i, r []expr.Expr) expr.Expr {
		return expr.Un(expr.Abs, value(i, r[0]))
	})
	inverse := expr.Compute("inverse", perGroup, func(i []expr.Expr) expr.Expr {
		zero, largest := expr.F(array.Float32, 0), peak.At(i...)
		return expr.Sel(expr.Bin(expr.Eq, largest, zero), zero, expr.DivE(expr.F(array.Float32, steps), largest))
	})
	data := expr.Compute("data", append(slices.Clone(perGroup), b.size), func(i []expr.Expr) expr.Expr {
		x := expr.MulE(value(i, i[rank+1]), inverse.At(i[:rank+1]...))
		x = expr.MinE(expr.MaxE(x, expr.F(array.Float32, -steps)), expr.F(array.Float32, steps))
		return expr.To(array.Int8, expr.Un(expr.Round, x))
	})
	b.made.Peak, b.made.Inverse, b.made.Data = b.s.added(peak).ID, b.s.added(inverse).ID, b.s.added(data).ID
	var offset *expr.Tensor
	step := func(i []expr.Expr) expr.Expr { return expr.MulE(peak.At(i...), expr.F(array.Float32, 1.0/steps)) }
	if b.zero != nil {
		total := expr.ReduceOver("total", expr.Sum, perGroup, []int64{b.size}, func(i, r []expr.Expr) expr.Expr {
			return expr.To(array.Int32, data.At(append(slices.Clone(i), r[0])...))
		})
		offset = expr.Compute("offset", perGroup, func(i []expr.Expr) expr.Expr {
			e := expr.MulE(expr.To(array.Float32, total.At(i...)), step(i))
			if z, ok := b.zero.(*expr.Float); ok {
				e = expr.MulE(e, z)
			}
			return e
		})
		b.made.Total, b.made.Offset = b.s.added(total).ID, b.s.added(offset).ID
	}
	partial := b.partialIntegers(data, weights)
	b.made.Partial = b.s.added(partial).ID
	b.finish(g, func(row []expr.Expr, group, column expr.Expr) expr.Expr {
		at := append(slices.Clone(row), group)
		sum := expr.MulE(expr.To(array.Float32, partial.At(append(slices.Clone(at), column)...)), step(at))
		if offset != nil {
			shift := offset.At(at...)
			if _, ok := b.zero.(*expr.Float); !ok {
				shift = b.at(b.zero, nil, group, column, shift)
			}
			sum = expr.SubE(sum, shift)
		}
		return b.at(b.scale, nil, group, column, sum)
	})
}

// partialIntegers returns the integer sums of groups. A separate stage extracts halves of bytes.
func (b *blockwise) partialIntegers(data, weights *expr.Tensor) *expr.Tensor {
	rank, steps := len(b.rows), b.size/b.step()
	extents := []int64{steps, dotTerms}
	if b.nibbles {
		extents = []int64{steps, 2, dotTerms}
		halves := expr.Compute("halves", []int64{weights.Shape[0], 2, weights.Shape[1]}, func(i []expr.Expr) expr.Expr {
			both := weights.At(i[0], i[2])
			return choose(i[1], 2, func(half int64) expr.Expr {
				if half == 0 {
					return expr.LowNibble(both)
				}
				return expr.HighNibble(both)
			})
		})
		b.made.Weights = b.s.added(halves).ID
		weights = halves
	}
	return expr.ReduceOver("partial", expr.Sum, slices.Concat(b.shape, []int64{b.groups, b.columns}), extents, func(i, r []expr.Expr) expr.Expr {
		term := r[len(r)-1]
		at := []expr.Expr{expr.AddE(expr.MulE(i[rank], expr.I(steps)), r[0])}
		within := expr.AddE(expr.MulE(r[0], expr.I(b.step())), term)
		if b.nibbles {
			at = append(at, r[1])
			within = expr.AddE(within, expr.MulE(r[1], expr.I(dotTerms)))
		}
		at = append(at, expr.AddE(expr.MulE(i[rank+1], expr.I(dotTerms)), term))
		x := data.At(append(slices.Clone(i[:rank+1]), within)...)
		return expr.MulE(expr.To(array.Int32, x), expr.To(array.Int32, weights.At(at...)))
	})
}
