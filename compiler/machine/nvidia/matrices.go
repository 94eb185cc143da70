package nvidia

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
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
	return &ir.Instruction{
		Name: strings.ReplaceAll(strings.ToLower(name), "_", "."), By: ir.ByGroup, Text: name + "(%s, %s);",
		Params: []ir.Param{
			{Name: "to", Use: ir.Write, In: ir.Private, Form: ir.Address},
			{Name: "from", Use: ir.Read, In: ir.Shared, Bytes: MatrixRowBytes, Form: ir.Place},
		},
	}
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
	return &ir.Instruction{
		Name: strings.ReplaceAll(strings.ToLower(name), "_", "."), By: ir.ByGroup, Text: name + "(%s, %s, %s);",
		Params: []ir.Param{
			{Name: "sums", Use: ir.Update, In: ir.Private, Form: ir.Strided},
			{Name: "a", Use: ir.Read, In: ir.Private, Form: ir.Address},
			{Name: "b", Use: ir.Read, In: ir.Private, Form: ir.Address},
		},
	}
}
