package nvidia

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// MatrixRows and MatrixColumns are the extents of the matrix of sums of a warp's product. MatrixRowBytes is the length
// of a row that LoadMatrices loads.
const (
	MatrixRows     = 16
	MatrixColumns  = 8
	MatrixRowBytes = 16
)

// LoadMatrices returns the instruction that loads count matrices (1, 2 or 4) of 8 rows of 16 bytes from shared memory
// to the registers of a warp's threads, one register per thread and matrix. Thread 8k + n addresses row n of matrix k,
// at a multiple of 16 bytes; threads without a matrix address any existing row. If turned is set, a register receives
// neighbours of a column, of 16 bits each, instead of neighbours of a row.
func LoadMatrices(count int64, turned bool) *ir.Instruction {
	name := fmt.Sprintf("LDMATRIX_X%d", count)
	if turned {
		name += "_TRANS"
	}
	i := &ir.Instruction{
		Name: strings.ReplaceAll(strings.ToLower(name), "_", "."), By: ir.ByGroup, Text: name + "(%s, %s);",
		Params: []ir.Param{
			{Name: "to", Use: ir.Write, In: ir.Private, Form: ir.Address},
			{Name: "from", Use: ir.Read, In: ir.Shared, Bytes: MatrixRowBytes, Form: ir.Place},
		},
	}
	const halves = MatrixRowBytes / 2
	matrix, row, quad, half := loopOver("matrix", count), loopOver("row", 8), loopOver("quad", 4), loopOver("half", 2)
	i.Meaning = ir.NewMeaning(i, func(f []ir.Formal) ir.Block {
		line, at := expr.Expr(row), weighted(quad, 2, half, 1)
		if turned {
			line, at = at, line
		}
		to := f[0].Index(weighted(row, 4, quad, 1), nil, weighted(matrix, 2, half, 1))
		from := f[1].Index(weighted(matrix, 8, line, 1), nil, at)
		return ir.Nest(ir.Serial, ir.Block{&ir.Store{Buffer: f[0].Buffer, Index: to, Value: f[1].At(from)}}, matrix, row, quad, half)
	}, ir.Flat("to", array.Uint16, 2*count), ir.Flat("from", array.Uint16, halves))
	return i
}

func loopOver(name string, extent int64) *expr.Var { return &expr.Var{Name: name, Extent: extent} }

// weighted returns the sum of two expressions, each times a number.
func weighted(a expr.Expr, timesA int64, b expr.Expr, timesB int64) expr.Expr {
	return expr.AddE(expr.MulE(a, expr.I(timesA)), expr.MulE(b, expr.I(timesB)))
}

// signs maps operand types to the suffixes for integers.
var signs = map[[2]array.DType]string{
	{array.Int8, array.Int8}: "S8", {array.Uint8, array.Uint8}: "U8", {array.Int8, array.Uint8}: "S8_U8", {array.Uint8, array.Int8}: "U8_S8",
}

// Multiply returns the instruction that adds the product of two matrices to the sums of a warp, given the types of the
// factors. All are distributed over the registers of its threads. The 16 by 8 sums are two neighbours of each thread,
// and two more at the operand's stride. The first factor has 4 registers per thread, the second 2.
func Multiply(f schedule.Format, a, b array.DType) *ir.Instruction {
	name := map[schedule.Format]string{
		schedule.TF32: "MMA_M16N8K8_TF32", schedule.TF32Compensated: "MMA_M16N8K8_TF32", schedule.BF16: "MMA_M16N8K16_BF16",
		schedule.F16: "MMA_M16N8K16_F16", schedule.I8: "MMA_M16N8K32_",
	}[f] + signs[[2]array.DType{a, b}]
	i := &ir.Instruction{
		Name: strings.ReplaceAll(strings.ToLower(name), "_", "."), By: ir.ByGroup, Text: name + "(%s, %s, %s);",
		Params: []ir.Param{
			{Name: "sums", Use: ir.Update, In: ir.Private, Form: ir.Strided},
			{Name: "a", Use: ir.Read, In: ir.Private, Form: ir.Address},
			{Name: "b", Use: ir.Read, In: ir.Private, Form: ir.Address},
		},
	}
	i.Meaning = ir.NewMeaning(i, func(x []ir.Formal) ir.Block { return warpSums(f, x) }, ir.Flat("sums", f.Sum(), 2),
		ir.Flat("a", element(f, a), 4*f.Packed()), ir.Flat("b", element(f, b), 2*f.Packed()))
	return i
}

// warpSums adds products. Thread 4 row + quad of a warp has sums of the rows row and row + 8, and the columns 2 quad
// and 2 quad + 1. It has the terms of these rows, and of column row, that begin at quad in either half.
func warpSums(f schedule.Format, x []ir.Formal) ir.Block {
	row, quad, below, next := loopOver("row", 8), loopOver("quad", 4), loopOver("below", 2), loopOver("next", 2)
	half, group, term := loopOver("half", 2), loopOver("group", 4), loopOver("term", f.Packed())
	a := x[1].Index(weighted(row, 4, group, 1), nil, weighted(weighted(half, 2, below, 1), f.Packed(), term, 1))
	b := x[2].Index(weighted(weighted(quad, 2, next, 1), 4, group, 1), nil, weighted(half, f.Packed(), term, 1))
	step := ir.Add(x[0].Buffer, x[0].Index(weighted(row, 4, quad, 1), below, next), product(f, x[1].At(a), x[2].At(b)))
	return ir.Nest(ir.Serial, ir.Block{step}, row, quad, below, next, half, group, term)
}

// element returns the type of a factor's elements in a format, given that of the operand.
func element(f schedule.Format, d array.DType) array.DType {
	switch f {
	case schedule.BF16, schedule.WarpgroupBF16:
		return array.BFloat16
	case schedule.F16, schedule.WarpgroupF16:
		return array.Float16
	case schedule.I8, schedule.WarpgroupI8:
		return d
	}
	return array.Float32
}

// product returns the product of two factors.
func product(f schedule.Format, a, b expr.Expr) expr.Expr {
	wide := func(e expr.Expr) expr.Expr {
		if e.DType() == array.Float32 {
			return &ir.Apply{Instruction: leadingBits, Type: array.Float32, Values: []expr.Expr{e}}
		}
		return expr.To(f.Sum(), e)
	}
	return expr.MulE(wide(a), wide(b))
}

// leadingBits returns a float without the last 13 bits, which TF32 lacks. Its text is that of the simulator.
var leadingBits = &ir.Instruction{Name: "tf32.leading", By: ir.ByAny, Text: "sim_tf32(%s)"}
