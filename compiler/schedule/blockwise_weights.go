package schedule

import (
	"encoding/binary"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// layOut makes the stage read its codes in instruction order, and returns the constant in that layout. The caller
// creates the stages that read it.
func (b *blockwise) layOut(g *Stage) *expr.Tensor {
	t := b.weights.Tensor
	source := expr.NewConstant(t.Name, t.DType, t.Shape...)
	tr := &Transform{Source: source}
	switch {
	case b.form == BlockFloats:
		tr.Result, tr.compute = b.words(source)
	case b.nibbles:
		tr.Result, tr.compute = b.pairs(source)
	default:
		tr.Result, tr.compute = b.bytes(source)
	}
	return b.s.transform(b.constant, tr)
}

// bytes stores four neighbours of a column contiguously, as unsigned values.
func (b *blockwise) bytes(source *expr.Tensor) (*expr.Tensor, func(*array.Array) *array.Array) {
	shift := byte(0)
	if b.signed() {
		shift = signShift
	}
	shape := []int64{b.inner.Extent / dotTerms, dotTerms * b.columns}
	result := expr.Compute("neighbours", shape, func(i []expr.Expr) expr.Expr {
		column, term := expr.Bin(expr.FloorDiv, i[1], expr.I(dotTerms)), expr.Bin(expr.FloorMod, i[1], expr.I(dotTerms))
		code := source.At(expr.AddE(expr.MulE(i[0], expr.I(dotTerms)), term), column)
		if shift == 0 {
			return code
		}
		return expr.To(array.Uint8, expr.AddE(expr.To(array.Int32, code), &expr.Int{Value: signShift, Type: array.Int32}))
	})
	return result, func(a *array.Array) *array.Array {
		out, n := array.New(array.Uint8, shape...), b.columns
		for k := range b.inner.Extent {
			row := out.Data[k/dotTerms*dotTerms*n:]
			for c, code := range a.Data[k*n : (k+1)*n] {
				row[int64(c)*dotTerms+k%dotTerms] = code + shift
			}
		}
		return out
	}
}

// pairs stores four neighbours of a column contiguously, each with its fourth successor in the high half of the byte.
func (b *blockwise) pairs(source *expr.Tensor) (*expr.Tensor, func(*array.Array) *array.Array) {
	shape := []int64{b.inner.Extent / (2 * dotTerms), dotTerms * b.columns}
	result := expr.Compute("pairs", shape, func(i []expr.Expr) expr.Expr {
		column, term := expr.Bin(expr.FloorDiv, i[1], expr.I(dotTerms)), expr.Bin(expr.FloorMod, i[1], expr.I(dotTerms))
		code := func(half int64) expr.Expr {
			k := expr.AddE(expr.MulE(i[0], expr.I(2*dotTerms)), expr.AddE(term, expr.I(half*dotTerms)))
			return expr.To(array.Int32, expr.Nibble(source.At(expr.Bin(expr.FloorDiv, k, expr.I(2)), column), k))
		}
		upper := expr.MulE(code(1), &expr.Int{Value: 16, Type: array.Int32})
		return expr.To(array.Uint8, expr.AddE(code(0), upper))
	})
	return result, func(a *array.Array) *array.Array {
		out, n := array.New(array.Uint8, shape...), b.columns
		for k := int64(0); k < b.inner.Extent; k += 2 {
			row, from := out.Data[k/(2*dotTerms)*dotTerms*n:], a.Data[k/2*n:(k/2+1)*n]
			term, shift := k%dotTerms, k/dotTerms%2*4
			for c, both := range from {
				at := int64(c)*dotTerms + term
				row[at] |= both & 15 << shift
				row[at+1] |= both >> 4 << shift
			}
		}
		return out
	}
}

// words packs eight neighbours of a column into a word, the first one in the lowest bits.
func (b *blockwise) words(source *expr.Tensor) (*expr.Tensor, func(*array.Array) *array.Array) {
	const bytes = 4
	shape := []int64{b.inner.Extent / (2 * bytes), b.columns}
	result := expr.Compute("words", shape, func(i []expr.Expr) expr.Expr {
		word := expr.Zero(array.Int32)
		for k := int64(bytes - 1); k >= 0; k-- {
			both := expr.To(array.Int32, source.At(expr.AddE(expr.MulE(i[0], expr.I(bytes)), expr.I(k)), i[1]))
			word = expr.AddE(expr.MulE(word, &expr.Int{Value: 256, Type: array.Int32}), both)
		}
		return word
	})
	return result, func(a *array.Array) *array.Array {
		out, n := array.New(array.Int32, shape...), b.columns
		for r := range shape[0] {
			for c := range n {
				at := a.Data[r*bytes*n+c:]
				word := uint32(at[0]) | uint32(at[n])<<8 | uint32(at[2*n])<<16 | uint32(at[3*n])<<24
				binary.LittleEndian.PutUint32(out.Data[(r*n+c)*bytes:], word)
			}
		}
		return out
	}
}
