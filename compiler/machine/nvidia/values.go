package nvidia

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Shuffle returns the value of another thread of the warp: the one whose number differs in the bits of a mask. All
// threads of the warp exchange at the same time.
func Shuffle(v expr.Expr, mask int64) *ir.Apply {
	i := &ir.Instruction{Name: fmt.Sprintf("shuffle.xor.%d", mask), By: ir.ByGroup, Text: fmt.Sprintf("SHUFFLE_XOR(%%s, %d)", mask)}
	return &ir.Apply{Instruction: i, Type: v.DType(), Values: []expr.Expr{v}}
}

// Pack returns a register of a factor of Multiply: neighbouring terms of a row or a column, the first one in the
// lowest bits. If rest is set, it holds the remainder of their rounding.
func Pack(f schedule.Format, rest bool, terms []expr.Expr) *ir.Apply {
	word := "TF32"
	switch {
	case f.Holds(terms[0].DType()) && f.Packed() > 1:
		word = fmt.Sprintf("PACK%d", f.Packed())
	case f == schedule.BF16:
		word = "BF16X2"
	case rest:
		word = "TF32_REST"
	}
	if f.Packed() == 1 {
		terms = []expr.Expr{expr.To(array.Float32, terms[0])}
	}
	text := word + "(" + strings.Trim(strings.Repeat(", %s", len(terms)), ", ") + ")"
	return &ir.Apply{Instruction: &ir.Instruction{Name: strings.ReplaceAll(strings.ToLower(word), "_", "."), By: ir.ByThread, Text: text}, Type: array.Uint32, Values: terms}
}
