package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// instructions maps formats to the macros of matrix instructions.
var instructions = map[schedule.Format]string{
	schedule.TF32: "MMA_M16N8K8_TF32", schedule.TF32Compensated: "MMA_M16N8K8_TF32", schedule.BF16: "MMA_M16N8K16_BF16",
	schedule.F16: "MMA_M16N8K16_F16", schedule.I8: "MMA_M16N8K32_",
}

// signs maps operand types to the macro suffixes for integers.
var signs = map[[2]array.DType]string{
	{array.Int8, array.Int8}: "S8", {array.Uint8, array.Uint8}: "U8", {array.Int8, array.Uint8}: "S8_U8", {array.Uint8, array.Int8}: "U8_S8",
}

func (p *printer) loadMatrices(n *ir.LoadMatrices) {
	turned := ""
	if n.Turned {
		turned = "_TRANS"
	}
	to := p.element(n.To.Tensor, n.ToIndex, "")
	p.line("LDMATRIX_X%d%s(&%s, %s, %s);", n.Count, turned, to, p.buffers[n.From.Tensor], p.index(n.FromIndex))
}

func (p *printer) multiply(n *ir.MultiplyMatrices) {
	at := func(t *expr.Tensor, index expr.Expr) string {
		return fmt.Sprintf("&%s[%s]", p.buffers[t], p.index(index))
	}
	word := instructions[n.Format] + signs[[2]array.DType{n.TypeA, n.TypeB}]
	p.line("%s(%s, %d, %s, %s);", word, at(n.Sum.Tensor, n.SumIndex), n.RowElements, at(n.A.Tensor, n.AIndex), at(n.B.Tensor, n.BIndex))
}

// warpgroupTypes maps formats to the type names in warpgroup macros.
var warpgroupTypes = map[schedule.Format]string{schedule.WarpgroupTF32: "TF32", schedule.WarpgroupBF16: "BF16", schedule.WarpgroupF16: "F16"}

func (p *printer) multiplyShared(n *ir.MultiplyShared) {
	matrix := func(b *ir.Buffer, index expr.Expr, turned bool) string {
		rowsAreTerms := 0
		if turned {
			rowsAreTerms = 1
		}
		return fmt.Sprintf("%s, %s, %d", p.buffers[b.Tensor], p.index(index), rowsAreTerms)
	}
	p.line("WGMMA(%d, %s, &%s[%s], %d, %s, %s);", n.Columns, warpgroupTypes[n.Format]+signs[[2]array.DType{n.TypeA, n.TypeB}],
		p.buffers[n.Sum.Tensor], p.index(n.SumIndex), n.RowElements, matrix(n.A, n.AIndex, n.TurnedA), matrix(n.B, n.BIndex, n.TurnedB))
}

func (p *printer) waitProducts(n *ir.WaitProducts) {
	if n.Groups > 0 || len(n.Sums) == 0 {
		p.line("WGMMA_WAIT(%d);", n.Groups)
	}
	if n.Groups == 0 {
		for _, b := range n.Sums {
			p.line("WGMMA_WAIT_ALL(%s, %d);", p.buffers[b.Tensor], b.Elements())
		}
	}
}

// other returns an expression that only kernels have.
func (p *printer) other(e expr.Expr) string {
	switch n := e.(type) {
	case *ir.Fragment:
		return p.fragment(n)
	case *ir.Shuffled:
		return fmt.Sprintf("SHUFFLE_XOR(%s, %d)", p.scalars.Text(n.Value), n.Mask)
	}
	panic(fmt.Sprintf("gpu: unknown expression %T", e))
}

// fragment returns a register of an operand.
func (p *printer) fragment(n *ir.Fragment) string {
	elements := make([]string, len(n.Elements))
	for k, x := range n.Elements {
		if n.Format.Packed() == 1 {
			x = expr.To(array.Float32, x)
		}
		elements[k] = p.scalars.Text(x)
	}
	return fmt.Sprintf("%s(%s)", packing(n), strings.Join(elements, ", "))
}

// packing returns the macro that packs elements into a register.
func packing(n *ir.Fragment) string {
	switch {
	case n.Format.Holds(n.Elements[0].DType()):
		return map[int64]string{1: "TF32", 2: "PACK2", 4: "PACK4"}[n.Format.Packed()]
	case n.Format == schedule.BF16:
		return "BF16X2"
	case n.Rest:
		return "TF32_REST"
	}
	return "TF32"
}
