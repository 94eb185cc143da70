package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// BlockMatMul is a product of one or more matrices with block-quantised weights; models do not contain it. Operand 0
// is (..., K). Operand 1 holds the codes, u8 or i8: (K, N), or, if the attribute "bits" is 4, two neighbours along K
// in each u8 as in expr.Nibble, (ceil(K/2), N). Operand 2 holds the scales, (blocks, N), one per "block_size" codes of
// a column. Operand 3 is the zero point of the codes: one number, or one per scale; zero if omitted.
const BlockMatMul = "block_matmul"

var blockMatMulDefs = []Def{{
	Name: BlockMatMul, Internal: true, Kind: Reduction, MinIn: 3, MaxIn: 4, Label: "matmul", Lower: lowerBlockMatMul, Infer: inferBlockMatMul,
	Layout: rowMajorResult, Work: matmulWork, Detail: blockMatMulDetail, Traits: Traits{Tiled: true},
}}

func blockMatMulDetail(n *Node) string {
	return fmt.Sprintf("x %s in %d bits by %d", times([]int64{depthOf(n), n.In[2].Shape.Max()[1]}), n.Int("bits", 8), n.Int("block_size", 1))
}

// depthOf returns the extent of a product's sum, which is that of the weights.
func depthOf(n *Node) int64 {
	return n.In[0].Shape.Slice(n.In[0].Shape.Rank()-1, n.In[0].Shape.Rank()).Fixed()[0]
}

func inferBlockMatMul(n *Node) (Type, error) {
	x, codes, scale := n.In[0], n.In[1], n.In[2]
	bits, block := n.Int("bits", 8), n.Int("block_size", 0)
	if x.Shape.Rank() == 0 || codes.Shape.Rank() != 2 || scale.Shape.Rank() != 2 || bits != 4 && bits != 8 || block < 1 {
		return Type{}, fmt.Errorf("operands %v and %v with scales %v do not fit", x.Type, codes.Type, scale.Type)
	}
	known := codes.DType == array.Uint8 || codes.DType == array.Int8 && bits == 8
	if d := x.DType; d == array.Float64 || !d.IsFloat() || !scale.DType.IsFloat() || !known {
		return Type{}, fmt.Errorf("operands %v and %v with scales %v have unsupported types", x.Type, codes.Type, scale.Type)
	}
	depth, columns := depthOf(n), scale.Shape.Fixed()[1]
	rows := (depth*bits + 7) / 8
	if !slices.Equal(codes.Shape.Fixed(), []int64{rows, columns}) || scale.Shape.Fixed()[0] != (depth+block-1)/block {
		return Type{}, fmt.Errorf("operands %v and %v with scales %v do not fit", x.Type, codes.Type, scale.Type)
	}
	if n.Has(3) && !n.In[3].Shape.Elements().Is(1) && !n.In[3].Shape.Equal(scale.Shape) {
		return Type{}, fmt.Errorf("zero points %v do not fit scales %v", n.In[3].Type, scale.Type)
	}
	return Type{x.DType, x.Shape.With(x.Shape.Rank()-1, extent.Of(columns))}, nil
}

// PairsOfRows packs two neighbouring rows of codes into each byte, the first in the low half, as a 4-bit
// BlockMatMul expects them.
func PairsOfRows(codes *array.Array) *array.Array {
	rows, columns := codes.Shape[0], codes.Shape[1]
	packed := array.New(array.Uint8, (rows+1)/2, columns)
	for k := range rows {
		to := packed.Data[k/2*columns : (k/2+1)*columns]
		for n, code := range codes.Data[k*columns : (k+1)*columns] {
			to[n] |= code << (k % 2 * 4)
		}
	}
	return packed
}

// lowerBlockMatMul computes the sum over k of x[..., k] * ((code[k, n] - zero[k/block, n]) * scale[k/block, n]).
func lowerBlockMatMul(l *Lowering, n *Node, in []Operand) Operand {
	const f = array.Float32
	x, codes, scale := l.matrix(in[0]), l.matrix(in[1]), l.matrix(in[2])
	block := expr.I(min(n.Int("block_size", 1), depthOf(n)))
	zero := func(_, _ expr.Expr) expr.Expr { return nil }
	switch {
	case n.Has(3) && n.In[3].Shape.Elements().Is(1):
		z := l.Readable(in[3])
		value := expr.To(f, z.At(zeros(z.Shape.Rank())...))
		zero = func(_, _ expr.Expr) expr.Expr { return value }
	case n.Has(3):
		z := l.matrix(in[3])
		zero = func(b, column expr.Expr) expr.Expr { return expr.To(f, z.At(b, column)) }
	}
	rank := n.Out.Shape.Rank()
	acc := l.Reduce("matmul", expr.Sum, n.Out.Shape, RowMajor(rank), extent.Fixed(depthOf(n)), func(i, r []expr.Expr) expr.Expr {
		k, column := r[0], i[rank-1]
		var code expr.Expr
		if n.Int("bits", 8) == 4 {
			code = expr.Nibble(codes.At(expr.Bin(expr.FloorDiv, k, expr.I(2)), column), k)
		} else {
			code = codes.At(k, column)
		}
		code = expr.To(f, code)
		b := expr.Simplify(expr.Bin(expr.FloorDiv, k, block))
		if z := zero(b, column); z != nil {
			code = expr.SubE(code, z)
		}
		at := append(append([]expr.Expr{}, i[:rank-1]...), k)
		return expr.MulE(wide(x.At(at...)), expr.MulE(code, wide(scale.At(b, column))))
	})
	return narrow(l, n, acc)
}
