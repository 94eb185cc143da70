package codegen

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// maxStored is the maximum width of a thread's store in bytes.
const maxStored = 16

// neighbours prints a loop over contiguous elements of global memory as a single vector store. It returns false if
// the loop is no such store. Scalar stores would move as many memory sectors for each element as for all.
func (p *printer) neighbours(n *ir.For) bool {
	if n.Kind != ir.Unrolled && n.Kind != ir.Vector || n.Range != nil || len(n.Body) != 1 {
		return false
	}
	st, ok := n.Body[0].(*ir.Store)
	if !ok || !p.aligned[st.Buffer.Tensor] || slices.ContainsFunc(expr.Loads(st.Value), func(l *expr.Load) bool { return l.Tensor == st.Buffer.Tensor }) {
		return false
	}
	bytes := n.Extent * st.Buffer.Tensor.DType.Bytes()
	first, ok := expr.Neighbours(st.Index, n.Var, n.Extent)
	if !ok || n.Extent < 2 || bytes > maxStored || bytes&(bytes-1) != 0 {
		return false
	}
	scalar := cprint.TypeOf(st.Buffer.Tensor.DType).Scalar
	all := p.fresh("v")
	p.line("{")
	p.indent++
	p.line("V(%s, %d) %s;", scalar, n.Extent, all)
	for k := range n.Extent {
		lane := expr.Simplify(expr.Substitute(st.Value, map[*expr.Var]expr.Expr{n.Var: expr.I(k)}))
		p.line("%s[%d] = %s;", all, k, p.scalars.Text(lane))
	}
	p.line("STOREV(%s, %d, %s, %s, %s);", scalar, n.Extent, p.buffers[st.Buffer.Tensor], p.index(first), all)
	p.indent--
	p.line("}")
	return true
}
