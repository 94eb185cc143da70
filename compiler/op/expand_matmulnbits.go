package op

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// matMulNBits is the product of input 0 (..., K) and the transpose of weights (N, K), block-quantised along K, plus
// input 5. Input 1 holds the codes, (N, blocks, bytes of a block), the first in the lowest bits; input 2 a scale,
// and input 3 a zero point for each block: integer zero points are packed like codes, row by row.
func (e *expansion) matMulNBits() []*Item {
	x, bias := e.tensor(0), e.tensor(5)
	w := e.packedWeights()
	result := e.blockMatMul(x, w)
	if bias != nil {
		result = e.op(Add, nil, result, bias)
	}
	return only(result)
}

// minBlock and maxBlock bound the block size, which is a power of two.
const (
	minBlock = 16
	maxBlock = 1 << 16
)

// packedWeights returns the weights of a MatMulNBits.
func (e *expansion) packedWeights() (w blockWeights) {
	x, codes, scales, zeros := e.tensor(0), e.tensor(1), e.tensor(2), e.tensor(3)
	depth, columns := e.node.Int("K", 0), e.node.Int("N", 0)
	w.bits, w.block = e.node.Int("bits", 4), e.node.Int("block_size", 0)
	switch {
	case depth < 1 || columns < 1 || x.Shape.Rank() == 0 || !x.Shape.At(x.Shape.Rank()-1).Is(depth):
		e.fail("input 0 %v does not have K=%d elements in each row, or N=%d is not positive", x.Type, depth, columns)
	case w.bits != 2 && w.bits != 4 && w.bits != 8:
		e.fail("weights of %d bits are not supported: quantise to 2, 4 or 8", w.bits)
	case w.block < minBlock || w.block > maxBlock || w.block&(w.block-1) != 0:
		e.fail("block_size %d is not a power of two from %d to %d", w.block, minBlock, maxBlock)
	case codes.Const == nil || scales.Const == nil || !isKnown(zeros):
		e.fail("weights, scales or zero points are not constants: save the model with them as initializers")
	}
	blocks := (depth-1)/w.block + 1
	e.checkOrder(depth, w.block)
	if want := []int64{columns, blocks, w.block * w.bits / 8}; codes.DType != array.Uint8 || !slices.Equal(codes.Const.Shape, want) {
		e.fail("input 1 %v has not the codes of N=%d columns in %d blocks of %d: want u8%v", codes.Type, columns, blocks, w.block, want)
	}
	if !scales.DType.IsFloat() || scales.Const.Len() != columns*blocks {
		e.fail("input 2 %v has not a scale for each of %d blocks of N=%d columns", scales.Type, blocks, columns)
	}
	w.codes = rowsOfCodes(codes.Const, (depth*w.bits+7)/8)
	w.scale = e.transposed(&array.Array{DType: scales.DType, Shape: []int64{columns, blocks}, Data: scales.Const.Data})
	w.zero = e.packedZeros(zeros, columns, blocks, w.bits)
	if w.bits == 2 {
		w.bits, w.codes = 4, inFourBits(w.codes).Head(0, (depth+1)/2)
	}
	return w
}

// checkOrder rejects columns of weights in another order than that of input 0.
func (e *expansion) checkOrder(depth, block int64) {
	order := e.tensor(4)
	if order == nil {
		return
	}
	if order.Const == nil || !order.DType.IsInt() || order.Const.Len() < depth {
		e.fail("input 4 (g_idx) %v is not a constant with the block of each of K=%d columns", order.Type, depth)
	}
	for k := range depth {
		if order.Const.Int(k) != k/block {
			e.fail("input 4 (g_idx), which reorders columns, is not supported: quantise without reordering (act_order)")
		}
	}
}

// rowsOfCodes returns the first bytes of each column's codes, as rows with a byte per column.
func rowsOfCodes(codes *array.Array, rows int64) *array.Array {
	columns := codes.Shape[0]
	each := codes.Len() / columns
	out := array.New(array.Uint8, rows, columns)
	for n := range columns {
		for k, b := range codes.Data[n*each : n*each+rows] {
			out.Data[int64(k)*columns+n] = b
		}
	}
	return out
}

// inFourBits returns rows of codes with 2 bits as twice as many with 4.
func inFourBits(codes *array.Array) *array.Array {
	rows, columns := codes.Shape[0], codes.Shape[1]
	out := array.New(array.Uint8, 2*rows, columns)
	for k, b := range codes.Data {
		at := out.Data[int64(k)/columns*2*columns+int64(k)%columns:]
		at[0], at[columns] = b&3|b>>2&3<<4, b>>4&3|b>>6<<4
	}
	return out
}

// packedZeros returns the zero point of each block, (blocks, N), or a single one if the node lacks zero points.
func (e *expansion) packedZeros(zeros *Value, columns, blocks, bits int64) *array.Array {
	if zeros == nil {
		return array.Scalar(array.Float32, float64(int64(1)<<(bits-1)))
	}
	if zeros.DType.IsFloat() && zeros.Const.Len() == columns*blocks {
		return e.transposed(&array.Array{DType: zeros.DType, Shape: []int64{columns, blocks}, Data: zeros.Const.Data})
	}
	row := (blocks*bits + 7) / 8
	if zeros.DType != array.Uint8 || zeros.Const.Len() != columns*row {
		e.fail("input 3 %v has not a zero point for each of %d blocks of N=%d columns: want u8[%d,%d], or one float each", zeros.Type, blocks, columns, columns, row)
	}
	out := array.New(array.Uint8, blocks, columns)
	for n := range columns {
		for b := range blocks {
			code := zeros.Const.Data[n*row+b*bits/8] >> (b * bits % 8)
			out.Data[b*columns+n] = code & byte(1<<bits-1)
		}
	}
	return out
}
