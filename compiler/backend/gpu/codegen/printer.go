package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// printer prints one launch.
type printer struct {
	scalars *cprint.Scalars
	launch  launch
	out     strings.Builder
	indent  int
	counter int
	names   map[*expr.Var]string
	// buffers holds the names of the buffers in scope, private the ones private to a thread.
	buffers map[*expr.Tensor]string
	private map[*expr.Tensor]bool
	// maps holds the tensor maps of the launch.
	maps []tensorMap
	// aligned holds the buffers in global memory that are known to be aligned to 16 bytes.
	aligned map[*expr.Tensor]bool
	// shared holds the declarations of arrays in shared memory, at the start of a kernel. sharedBytes is their size
	// so far.
	shared      strings.Builder
	sharedBytes int64
}

func (p *printer) line(format string, args ...any) {
	p.out.WriteString(strings.Repeat("  ", p.indent))
	fmt.Fprintf(&p.out, format, args...)
	p.out.WriteByte('\n')
}

func (p *printer) fresh(prefix string) string {
	p.counter++
	return fmt.Sprintf("%s_%d", strings.NewReplacer(".", "_", "-", "_").Replace(prefix), p.counter)
}

func (p *printer) variable(v *expr.Var) string {
	name, ok := p.names[v]
	if !ok {
		name = p.fresh(v.Name)
		p.names[v] = name
	}
	return name
}

// load returns an element of a buffer as C.
func (p *printer) load(n *expr.Load) string {
	return p.element(n.Tensor, n.Index[0], "LOAD(%s, %s)")
}

// element returns an access to an element: a variable if it is private to a thread, and the macro otherwise.
func (p *printer) element(t *expr.Tensor, index expr.Expr, words string) string {
	name, ok := p.buffers[t]
	if !ok {
		panic(fmt.Sprintf("gpu: buffer %s is not in scope", t.Name))
	}
	at := p.index(index)
	if p.private[t] {
		return fmt.Sprintf("%s[%s]", name, at)
	}
	return fmt.Sprintf(words, name, at)
}

// index returns an index as C: a sum of terms, which compilers reassociate.
func (p *printer) index(e expr.Expr) string {
	at := expr.Linearize(e)
	var terms []string
	for _, t := range at.Terms {
		text := p.scalars.Text(t.Atom)
		if t.Coef != 1 {
			text += fmt.Sprintf(" * %d", t.Coef)
		}
		terms = append(terms, text)
	}
	if at.Const != 0 || len(terms) == 0 {
		terms = append(terms, fmt.Sprint(at.Const))
	}
	return strings.Join(terms, " + ")
}

// other returns the value of an instruction.
func (p *printer) other(e expr.Expr) string {
	n, ok := e.(*ir.Apply)
	if !ok {
		panic(fmt.Sprintf("gpu: unknown expression %T", e))
	}
	values := make([]any, len(n.Values))
	for k, x := range n.Values {
		values[k] = p.scalars.Text(x)
	}
	return fmt.Sprintf(n.Text, values...)
}

// Array returns the name of an array.
func (p *printer) Array(t *expr.Tensor) string { return p.buffers[t] }

// Element returns a variable of a thread.
func (p *printer) Element(t *expr.Tensor, index expr.Expr) string { return p.element(t, index, "") }

// Vector returns nothing, since threads have no vectors.
func (p *printer) Vector(*expr.Tensor, expr.Expr, int64) string { return "" }

// Map returns the parameter of a tensor map.
func (p *printer) Map(a ir.Arg) string { return mapAmong(p.maps, a).name }

// Number returns an index.
func (p *printer) Number(e expr.Expr) string { return p.index(e) }

func (p *printer) block(b ir.Block) {
	p.indent++
	for _, st := range b {
		p.stmt(st)
	}
	p.indent--
}

func (p *printer) stmt(st ir.Stmt) {
	switch n := st.(type) {
	case *ir.Alloc:
		p.alloc(n.Buffer)
	case *ir.Let:
		p.line("const %s %s = %s;", p.scalars.Index, p.variable(n.Var), p.scalars.Text(n.Value))
	case *ir.If:
		p.line("if (%s) {", p.scalars.Text(n.Cond))
		p.block(n.Then)
		if len(n.Else) > 0 {
			p.line("} else {")
			p.block(n.Else)
		}
		p.line("}")
	case *ir.For:
		p.loop(n)
	case *ir.Store:
		p.store(n)
	case *ir.Barrier:
		p.line("BARRIER();")
	case *ir.Copy:
		copier{p, n}.copy()
	case *ir.Call:
		p.line("%s", n.Code(p))
	default:
		panic(fmt.Sprintf("gpu: unknown statement %T", st))
	}
}

func (p *printer) loop(n *ir.For) {
	if n.Kind == ir.Threads {
		p.threads(n)
		return
	}
	if n.Kind == ir.Serial && n.Range == nil && len(n.Body) == 1 {
		if c, ok := n.Body[0].(*ir.Copy); ok && c.Elements > 1 {
			copier{p, c}.rounds(n)
			return
		}
	}
	if p.neighbours(n) {
		return
	}
	switch {
	case n.Kind == ir.Unrolled || n.Kind == ir.Vector || onlyStores(n) && n.Extent <= maxRounds:
		p.line("UNROLL")
	case onlyStores(n):
		p.line("UNROLL_EIGHT")
	}
	v := p.variable(n.Var)
	first, end, step := "0", fmt.Sprint(n.Extent), v+"++"
	if r := n.Range; r != nil {
		first, end = p.scalars.Text(r.First), p.scalars.Text(r.End)
		if r.Every > 1 {
			step = fmt.Sprintf("%s += %d", v, r.Every)
		}
	}
	p.line("for (%s %s = %s; %s < %s; %s) {", p.scalars.Index, v, first, v, end, step)
	p.block(n.Body)
	p.line("}")
}

// onlyStores reports whether each iteration of a thread's loop is a single store. Unrolling overlaps the loads of
// several iterations, which compilers do not do for such loops on their own.
func onlyStores(n *ir.For) bool {
	if n.Kind != ir.Serial || n.Range != nil || len(n.Body) != 1 {
		return false
	}
	_, ok := n.Body[0].(*ir.Store)
	return ok
}

// threads prints the body of each thread, or of each of the first ones.
func (p *printer) threads(n *ir.For) {
	if n.Extent < p.launch.threads {
		p.line("if (TID < %d) {", n.Extent)
	} else {
		p.line("{")
	}
	p.indent++
	p.line("const %s %s = TID;", p.scalars.Index, p.variable(n.Var))
	p.indent--
	p.block(n.Body)
	p.line("}")
}

// alloc declares a buffer.
func (p *printer) alloc(b *ir.Buffer) {
	name := p.fresh(b.Tensor.Name)
	p.buffers[b.Tensor] = name
	delete(p.private, b.Tensor) // another version of these loops may place it elsewhere
	switch b.Space {
	case ir.Private:
		p.private[b.Tensor] = true
		p.line("%s %s[%d];", cprint.TypeOf(b.Tensor.DType).Scalar, name, b.Elements())
	case ir.Shared:
		p.declareShared(b, name)
	default:
		panic(fmt.Sprintf("gpu: buffer %s lies in %v", b.Tensor.Name, b.Space))
	}
}

// declareShared declares a buffer in shared memory. It is dynamic if all buffers together exceed the static limit.
func (p *printer) declareShared(b *ir.Buffer, name string) {
	scalar := cprint.TypeOf(b.Tensor.DType).Scalar
	word, layout := "SHARED", ""
	if b.Row > 0 {
		word, layout = "SWIZZLED", fmt.Sprintf(", %d, %d", b.Row, b.Rows)
	}
	if p.launch.dynamicBytes() == 0 {
		fmt.Fprintf(&p.shared, "  %s_ARRAY(%s, %s, %d%s);\n", word, scalar, name, b.Elements(), layout)
		return
	}
	p.sharedBytes = aligned(p.sharedBytes, b)
	fmt.Fprintf(&p.shared, "  %s_PART(%s, %s, %d%s, %d);\n", word, scalar, name, b.Elements(), layout, p.sharedBytes)
	p.sharedBytes += b.Bytes()
}

func (p *printer) store(n *ir.Store) {
	value := p.scalars.Text(n.Value)
	if p.private[n.Buffer.Tensor] {
		p.line("%s = %s;", p.element(n.Buffer.Tensor, n.Index, ""), value)
		return
	}
	p.line("%s;", p.element(n.Buffer.Tensor, n.Index, "STORE(%s, %s, "+strings.ReplaceAll(value, "%", "%%")+")"))
}
