package operators

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// blockSize is the number of weights of a column that share a scale.
const blockSize = 32

// blocks are products of float32 rows with block-quantised weights of 8 or 4 bits in the format of ggml. With fast
// numerics, rows may be rounded to 8 bits, as ggml always does. Shapes are rows, columns and depth.
var blocks = []family{
	{name: "Product q8", build: blockProduct(weight8, 1), question: askBlocks("q8_0"), shapes: decoded},
	{name: "Product q4", build: blockProduct(weight4, 2), question: askBlocks("q4_K"), shapes: decoded},
	{name: "Product q8 fast", build: blockProduct(weight8, 1), question: askBlocks("q8_0"), shapes: decoded, numerics: schedule.Fast},
	{name: "Product q4 fast", build: blockProduct(weight4, 2), question: askBlocks("q4_K"), shapes: decoded, numerics: schedule.Fast},
}

// decoded lists single-row products of language models.
var decoded = [][]int64{{1, 4096, 4096}, {1, 11008, 4096}, {1, 4096, 14336}}

// weight returns element (k, n) of a depth x columns weight matrix, as a float32.
type weight func(w *expr.Tensor, k, n expr.Expr) expr.Expr

// blockProduct returns a product with packed weights, shared of them in a byte.
func blockProduct(of weight, shared int64) func(batch int64, shape []int64) (*expr.Tensor, float64) {
	return func(batch int64, shape []int64) (*expr.Tensor, float64) {
		rows, columns, depth := batch*shape[0], shape[1], shape[2]
		a := expr.NewInput("a", float, rows, depth)
		w := expr.NewConstant("w", array.Uint8, depth/shared, columns)
		scale := expr.NewConstant("scale", float, depth/blockSize, columns)
		t := expr.ReduceOver("product", expr.Sum, []int64{rows, columns}, []int64{depth}, func(i, r []expr.Expr) expr.Expr {
			block := expr.Bin(expr.FloorDiv, r[0], expr.I(blockSize))
			return expr.MulE(a.At(i[0], r[0]), expr.MulE(of(w, r[0], i[1]), scale.At(block, i[1])))
		})
		return t, 2 * float64(rows*columns*depth)
	}
}

func weight8(w *expr.Tensor, k, n expr.Expr) expr.Expr {
	return expr.SubE(expr.To(float, w.At(k, n)), &expr.Float{Value: 128, Type: float})
}

func weight4(w *expr.Tensor, k, n expr.Expr) expr.Expr {
	code := expr.Nibble(w.At(expr.Bin(expr.FloorDiv, k, expr.I(2)), n), k)
	return expr.SubE(expr.To(float, code), &expr.Float{Value: 8, Type: float})
}

func askBlocks(element string) func(batch int64, shape []int64) string {
	return func(batch int64, shape []int64) string {
		return question("product", element, batch*shape[0], shape[1], shape[2])
	}
}
