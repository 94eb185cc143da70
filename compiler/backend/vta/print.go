package vta

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// printer prints a program as a C function that issues its instructions. It implements ir.Words.
type printer struct {
	*stream
	scalars *cprint.Scalars
	out     strings.Builder
	names   map[*expr.Tensor]string
	vars    map[*expr.Var]string
	indent  int
}

// text returns the function SYMBOL_run of the kernel ABI.
func (p *stream) text(symbol string, d *cprint.Declarations) string {
	w := &printer{stream: p, names: map[*expr.Tensor]string{}, vars: map[*expr.Var]string{}, indent: 1}
	w.scalars = &cprint.Scalars{Helpers: cprint.Helpers{Declarations: d, Dialect: cprint.C}, Var: func(v *expr.Var) string { return w.vars[v] }}
	for k, b := range p.Args {
		if b != nil {
			w.pointer(b, fmt.Sprintf("a%d", k), "args")
		}
	}
	for k, c := range p.Prepared {
		w.pointer(c.Buffer, fmt.Sprintf("p%d", k), "prepared")
	}
	for _, b := range p.buffers {
		m := p.memories[b.Tensor]
		w.names[b.Tensor] = fmt.Sprint(b.Index)
		w.line("vta_ring(vta, %d, VTA_%sS, %d, %d, %d, %d);", b.Index, names[m], b.OffsetBytes, slotBytes(b), b.Steps, b.Tensor.DType.Bytes())
	}
	w.block(p.Body)
	return fmt.Sprintf("static void %s_run(const struct tilth_runtime *rt, void *const *args, void *const *prepared, void *workspace) {\n"+
		"  struct vta *const vta = vta_open(workspace);\n%s  vta_close(vta);\n}\n", symbol, w.out.String())
}

// pointer declares an argument or a packed constant.
func (w *printer) pointer(b *ir.Buffer, name, array string) {
	w.names[b.Tensor] = name
	w.line("%s *const %s = %s[%d];", cprint.TypeOf(b.Tensor.DType).Scalar, name, array, b.Index)
}

func (w *printer) line(format string, args ...any) {
	w.out.WriteString(strings.Repeat("  ", w.indent))
	fmt.Fprintf(&w.out, format+"\n", args...)
}

func (w *printer) block(b ir.Block) {
	for _, st := range b {
		switch n := st.(type) {
		case *ir.For:
			v := fmt.Sprintf("i%d", len(w.vars))
			w.vars[n.Var] = v
			w.line("for (int64_t %[1]s = 0; %[1]s < %[2]d; %[1]s++) {", v, n.Extent)
			w.indent++
			w.block(n.Body)
			w.indent--
			w.line("}")
		case *ir.Call:
			w.line("%s", n.Code(w))
		}
	}
}

// Array implements ir.Words: the number of a buffer's ring.
func (w *printer) Array(t *expr.Tensor) string { return w.names[t] }

// Element implements ir.Words: an element in memory.
func (w *printer) Element(t *expr.Tensor, index expr.Expr) string {
	return fmt.Sprintf("%s[%s]", w.names[t], w.Number(index))
}

// Vector implements ir.Words. The host has no vectors.
func (w *printer) Vector(*expr.Tensor, expr.Expr, int64) string { return "" }

// Map implements ir.Words. There are no tensor maps.
func (w *printer) Map(ir.Arg) string { return "" }

// Number implements ir.Words.
func (w *printer) Number(e expr.Expr) string { return w.scalars.Text(expr.Linearize(e).Expr()) }
