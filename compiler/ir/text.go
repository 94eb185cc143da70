package ir

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/expr"
)

var kindNames = [...]string{Serial: "for", Parallel: "parallel", Vector: "vector", Unrolled: "unrolled", Dot: "dot",
	Blocks: "blocks", Threads: "threads", Matrices: "matrices", Lanewise: "lanewise", Persistent: "walk"}

// String returns the keyword of such a loop in the text of a kernel.
func (k Kind) String() string { return kindNames[k] }

var spaceNames = [...]string{Argument: "argument", Prepared: "prepared", Scratch: "scratch", Register: "register", Stack: "stack",
	Worker: "worker", Workspace: "workspace", Shared: "shared", Private: "private", Tile: "tile"}

// String returns the space's name in the text of a kernel.
func (s Space) String() string { return spaceNames[s] }

// Text returns a readable form of the kernel: its buffers, and one statement per line. Variables with equal names
// get numbers in the order of their first binding.
func (f *Func) Text() string {
	t := &texter{names: map[*expr.Var]string{}, taken: map[string]int{}, registers: map[*expr.Tensor]string{}}
	for _, b := range f.Args {
		if b != nil {
			t.line("%s", buffer(b))
		}
	}
	for _, p := range f.Prepared {
		t.line("%s from constant %d", buffer(p.Buffer), p.Constant)
	}
	t.block(f.Body)
	return t.out.String()
}

func buffer(b *Buffer) string {
	text := fmt.Sprintf("%s %s %v[%d]", b.Space, b.Tensor.Name, b.Tensor.DType, b.Elements())
	if b.Streamed {
		text += " streamed"
	}
	if b.Steps > 0 {
		text += fmt.Sprintf(" %d steps ahead", b.Steps)
	}
	if b.Row > 0 {
		text += fmt.Sprintf(" swizzled by rows of %d", b.Row)
	}
	if b.Spare > 0 {
		text += fmt.Sprintf(" and %d to spare", b.Spare)
	}
	if b.OffsetBytes > 0 {
		text += fmt.Sprintf(" at %d bytes", b.OffsetBytes)
	}
	for k, s := range b.Slots {
		if k == 0 {
			text += " as"
		}
		if text += fmt.Sprintf(" %d", s.Base); s.Lanes > 1 {
			text += fmt.Sprintf("..%d", s.Base+s.Lanes-1)
		}
	}
	if b.AheadBytes > 0 {
		text += fmt.Sprintf(" fetched %d bytes ahead", b.AheadBytes)
	}
	return text
}

type texter struct {
	out    strings.Builder
	indent int
	names  map[*expr.Var]string
	taken  map[string]int
	// registers holds the names of defined values.
	registers map[*expr.Tensor]string
}

func (t *texter) line(format string, args ...any) {
	t.out.WriteString(strings.Repeat("  ", t.indent))
	fmt.Fprintf(&t.out, format, args...)
	t.out.WriteByte('\n')
}

// fresh returns an unused name.
func (t *texter) fresh(name string) string {
	n := t.taken[name]
	if t.taken[name]++; n > 0 {
		name += "'" + strconv.Itoa(n)
	}
	return name
}

// bind assigns a variable a unique name.
func (t *texter) bind(v *expr.Var) string {
	name := t.fresh(v.Name)
	t.names[v] = name
	return name
}

// load returns an element of a buffer, or the value of a register.
func (t *texter) load(n *expr.Load) string {
	index := make([]string, len(n.Index))
	for k, x := range n.Index {
		index[k] = t.expr(x)
	}
	name, defined := t.registers[n.Tensor]
	switch {
	case !defined:
		name = n.Tensor.Name
	case n.Tensor.Shape[0] == 1:
		return name
	}
	return fmt.Sprintf("%s[%s]", name, strings.Join(index, ", "))
}

func (t *texter) block(b Block) {
	for _, st := range b {
		switch n := st.(type) {
		case *For:
			between := t.between(n.Range)
			t.line("%s %s < %d%s%s", t.kind(n), t.bind(n.Var), n.Extent, between, t.closure(n))
			t.nested(n.Body)
		case *If:
			t.line("if %s", t.expr(n.Cond))
			t.nested(n.Then)
			if len(n.Else) > 0 {
				t.line("else")
				t.nested(n.Else)
			}
		case *Let:
			value := t.expr(n.Value)
			t.line("let %s = %s", t.bind(n.Var), value)
		case *Alloc:
			t.line("%s", buffer(n.Buffer))
		case *Store:
			t.line("%s[%s] = %s%s", n.Buffer.Tensor.Name, t.expr(n.Index), t.expr(n.Value), map[bool]string{true: " streamed"}[n.Streamed])
		case *Define:
			t.define(n)
		case *Barrier:
			t.line("barrier")
		case *Copy:
			t.copy(n)
		case *Call:
			t.call(n)
		}
	}
}

// kind returns the keyword of a loop.
func (t *texter) kind(n *For) string {
	if n.Kind == Matrices {
		return fmt.Sprintf("%v of %v", n.Kind, n.Format)
	}
	return n.Kind.String()
}

func (t *texter) copy(n *Copy) {
	word, condition := "load", ""
	if n.Starts != nil {
		word = "copy"
	}
	if n.Elements > 1 {
		word += fmt.Sprintf(" %d to", n.Elements)
	}
	if n.Valid != nil {
		condition = " where " + t.expr(n.Valid)
	}
	t.line("%s %s[%s] = %s%s", word, n.To.Tensor.Name, t.expr(n.Index), t.expr(n.From), condition)
}

// between describes the range of a loop.
func (t *texter) between(r *Range) string {
	if r == nil {
		return ""
	}
	text := fmt.Sprintf(" from %s before %s", t.expr(r.First), t.expr(r.End))
	if r.Every > 1 {
		text += fmt.Sprintf(" by %d", r.Every)
	}
	return text
}

// closure describes the captures of a parallel loop.
func (t *texter) closure(n *For) string {
	var names []string
	for _, v := range n.Captured {
		names = append(names, t.expr(v))
	}
	for _, b := range n.Shared {
		names = append(names, b.Tensor.Name)
	}
	if len(names) == 0 {
		return ""
	}
	return " with " + strings.Join(names, ", ")
}

func (t *texter) nested(b Block) {
	t.indent++
	t.block(b)
	t.indent--
}

// define prints a definition.
func (t *texter) define(n *Define) {
	name := t.fresh(n.Buffer.Tensor.Name)
	if n.Lane == nil {
		t.line("define %s = %s", name, t.expr(n.Value))
	} else {
		lane := t.bind(n.Lane)
		t.line("define %s[%s < %d] = %s", name, lane, n.Lane.Extent, t.expr(n.Value))
	}
	t.registers[n.Buffer.Tensor] = name
}

// infix holds the infix operators with their precedence.
var infix = map[expr.BinaryOp]struct {
	sign     string
	strength int
}{
	expr.Or: {"or", 1}, expr.And: {"and", 2}, expr.Lt: {"<", 3}, expr.Le: {"<=", 3}, expr.Eq: {"==", 3}, expr.Ne: {"!=", 3},
	expr.Add: {"+", 4}, expr.Sub: {"-", 4}, expr.Mul: {"*", 5}, expr.Div: {"/", 5},
}

func (t *texter) expr(e expr.Expr) string { return t.operand(e, 0) }

// operand returns an expression within one of the given precedence.
func (t *texter) operand(e expr.Expr, within int) string {
	switch n := e.(type) {
	case *expr.Var:
		if name, bound := t.names[n]; bound {
			return name
		}
		return n.Name + "?" // unbound: Verify reports it
	case *expr.Int:
		return strconv.FormatInt(n.Value, 10)
	case *expr.Float:
		return strconv.FormatFloat(n.Value, 'g', -1, 64)
	case *expr.Load:
		return t.load(n)
	case *expr.Binary:
		if op, ok := infix[n.Op]; ok {
			text := t.operand(n.A, op.strength) + " " + op.sign + " " + t.operand(n.B, op.strength+1)
			if op.strength < within {
				return "(" + text + ")"
			}
			return text
		}
		return fmt.Sprintf("%v(%s, %s)", n.Op, t.expr(n.A), t.expr(n.B))
	case *expr.Unary:
		return fmt.Sprintf("%v(%s)", n.Op, t.expr(n.A))
	case *expr.Cast:
		return fmt.Sprintf("%v(%s)", n.Type, t.expr(n.A))
	case *expr.Select:
		return fmt.Sprintf("select(%s, %s, %s)", t.expr(n.Cond), t.expr(n.A), t.expr(n.B))
	case *Lanes:
		values := make([]string, len(n.Values))
		for k, x := range n.Values {
			values[k] = t.expr(x)
		}
		return "lanes(" + strings.Join(values, ", ") + ")"
	case *Picked:
		return t.picked(n)
	case *Folded:
		return t.folded(n)
	case *Lookup:
		return fmt.Sprintf("lookup(%d %d ... %d: %s)", n.Table.Int(0), n.Table.Int(1), n.Table.Int(n.Table.Len()-1), t.expr(n.At))
	case *Apply:
		values := make([]string, len(n.Values))
		for k, x := range n.Values {
			values[k] = t.expr(x)
		}
		return fmt.Sprintf("%s(%s)", n.Name, strings.Join(values, ", "))
	case *Spread:
		return t.spread(n)
	case *Across:
		lane := t.bind(n.Lane)
		return fmt.Sprintf("%v across %s < %d of %s", n.Op, lane, n.Lane.Extent, t.expr(n.Value))
	default:
		return fmt.Sprintf("%T", e)
	}
}

// spread prints the elements. Their number follows from their type if they make 32 bits.
func (t *texter) spread(n *Spread) string {
	if n.Word() {
		return fmt.Sprintf("spread %s[%s]", n.Tensor.Name, t.expr(n.First))
	}
	return fmt.Sprintf("spread %d of %s[%s]", n.Elements, n.Tensor.Name, t.expr(n.First))
}

// folded prints the vectors by their first elements.
func (t *texter) folded(n *Folded) string {
	from := make([]string, len(n.From))
	for k, l := range n.From {
		from[k] = t.load(l)
	}
	return fmt.Sprintf("fold(%d of %d from %s)", n.Factor, n.Width, strings.Join(from, ", "))
}

// picked prints the vectors by their first elements, and the positions in them lane by lane.
func (t *texter) picked(n *Picked) string {
	from := make([]string, len(n.From))
	for k, l := range n.From {
		from[k] = t.load(l)
	}
	picks := strings.Trim(fmt.Sprint(n.Picks), "[]")
	return fmt.Sprintf("pick(%d from %s: %s)", n.Width, strings.Join(from, ", "), picks)
}
