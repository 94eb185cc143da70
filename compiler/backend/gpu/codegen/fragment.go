package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

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
