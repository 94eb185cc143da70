package codegen

import (
	"fmt"
	"maps"
	"strings"

	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// printer prints one C function.
type printer struct {
	unit    *Unit
	kernel  *kernelPrinter
	scalars *cprint.Scalars
	out     strings.Builder
	indent  int
	names   map[*expr.Var]string
	// lane is the variable of the vectorized loop being printed, nil outside of one.
	lane  *expr.Var
	lanes int64
	// registers holds the buffers that live in named variables.
	registers map[*expr.Tensor]*register
	// memory maps buffers in memory to the C names of this function's pointers or arrays.
	memory map[*expr.Tensor]string
	// arrays holds those that are arrays, whose length compilers know.
	arrays map[*expr.Tensor]bool
	// pointers holds the pointers in scope, by the sum of their terms. depths is the number of loops around the
	// declaration of a variable; loops is the current number.
	pointers map[string]pointer
	depths   map[*expr.Var]int
	loops    int
	// guarded is the number of conditions that guard the current expression.
	guarded int
}

// register is a buffer in registers. A defined buffer is a variable of that name; others have one per slot.
type register struct {
	*ir.Buffer
	name    string
	defined bool
	// depth is the number of loops around the declaration.
	depth int
}

func (r *register) find(at int64) (ir.Slot, string) {
	for _, s := range r.Slots {
		if at >= s.Base && at < s.Base+s.Lanes {
			if r.defined {
				return s, r.name
			}
			return s, fmt.Sprintf("%s_%d", r.name, s.Base)
		}
	}
	panic(fmt.Sprintf("codegen: %s has no element %d", r.name, at))
}

func (r *register) lane(at int64) string {
	s, name := r.find(at)
	if s.Lanes == 1 {
		return name
	}
	return fmt.Sprintf("%s[%d]", name, at-s.Base)
}

func (r *register) vector(base, lanes int64) string {
	s, name := r.find(base)
	if s.Base != base || s.Lanes != lanes {
		panic(fmt.Sprintf("codegen: %s has no vector of %d lanes from %d on", r.name, lanes, base))
	}
	return name
}

func (p *printer) line(format string, args ...any) {
	for range p.indent {
		p.out.WriteString("  ")
	}
	fmt.Fprintf(&p.out, format, args...)
	p.out.WriteByte('\n')
}

// guard marks code as conditional until the returned function is called.
func (p *printer) guard() func() {
	p.guarded++
	return func() { p.guarded-- }
}

func (p *printer) varName(v *expr.Var) string {
	name, ok := p.names[v]
	if !ok {
		name = p.kernel.fresh(strings.NewReplacer(".", "_", "-", "_").Replace(v.Name) + "_")
		p.names[v] = name
	}
	return name
}

// scalar returns a C expression for e. The lane variable, if any, must not occur in it.
func (p *printer) scalar(e expr.Expr) string { return p.scalars.Text(e) }

// other returns a scalar that is not an expression of package expr.
func (p *printer) other(e expr.Expr) string {
	switch n := e.(type) {
	case *ir.Lookup:
		return fmt.Sprintf("%s[(uint8_t)%s]", p.unit.table(n.Table), p.scalar(n.At))
	case *ir.Across:
		return p.across(n)
	}
	panic(fmt.Sprintf("codegen: unknown expression %T", e))
}

func (p *printer) scalarLoad(n *expr.Load) string {
	at := expr.Linearize(n.Index[0])
	if reg := p.registers[n.Tensor]; reg != nil {
		return reg.lane(at.Const)
	}
	return p.element(n.Tensor, at)
}

func (p *printer) block(b ir.Block) {
	for _, st := range b {
		p.stmt(st)
	}
}

func (p *printer) stmt(st ir.Stmt) {
	switch n := st.(type) {
	case *ir.Alloc:
		p.alloc(n.Buffer)
	case *ir.Let:
		p.line("const int64_t %s = %s;", p.varName(n.Var), p.scalar(n.Value))
		p.depths[n.Var] = p.loops
	case *ir.If:
		p.branch(n)
	case *ir.For:
		p.loop(n)
	case *ir.Store:
		p.store(n)
	case *ir.Define:
		p.define(n)
	case *ir.Call:
		p.instruction(n)
	default:
		panic(fmt.Sprintf("codegen: unknown statement %T", st))
	}
}

// instruction prints a call of an instruction, after the declarations that it needs.
func (p *printer) instruction(c *ir.Call) {
	if c.Prelude != nil {
		for _, v := range c.Prelude.Vectors {
			p.unit.vector(v.Type, v.Lanes)
		}
		text := c.Prelude.Text
		if strings.Contains(text, ir.Plain) && !p.unit.declarations.Has(c.Prelude.Name) {
			text = strings.ReplaceAll(text, ir.Plain, p.unit.plain(c.Instruction))
		}
		p.unit.declarations.Declare(c.Prelude.Name, text)
	}
	p.line("%s", c.Code(p))
}

// Array returns the name of a buffer in memory.
func (p *printer) Array(t *expr.Tensor) string { return p.buffer(t) }

// Element returns an element in memory.
func (p *printer) Element(t *expr.Tensor, index expr.Expr) string {
	return p.element(t, expr.Linearize(index))
}

// Vector returns a variable or a vector in memory.
func (p *printer) Vector(t *expr.Tensor, index expr.Expr, lanes int64) string {
	at := expr.Linearize(index)
	if reg := p.registers[t]; reg != nil {
		return reg.vector(at.Const, lanes)
	}
	return fmt.Sprintf("*(%s_mem *)&%s", p.unit.vector(t.DType, lanes), p.element(t, at))
}

// Map returns nothing, since processors have no tensor maps.
func (p *printer) Map(ir.Arg) string { return "" }

// Number returns a sum.
func (p *printer) Number(e expr.Expr) string {
	at := expr.Linearize(e)
	text := ""
	for _, t := range at.Terms {
		text += fmt.Sprintf("%s * %d + ", p.scalar(t.Atom), t.Coef)
	}
	return text + fmt.Sprint(at.Const)
}

func (p *printer) branch(n *ir.If) {
	p.line("if (%s) {", p.scalar(n.Cond))
	p.nested(n.Then)
	if len(n.Else) > 0 {
		p.line("} else {")
		p.nested(n.Else)
	}
	p.line("}")
}

func (p *printer) nested(b ir.Block) {
	p.indent++
	outer := p.pointers
	p.pointers = maps.Clone(outer)
	p.block(b)
	p.pointers = outer
	p.indent--
}

func (p *printer) loop(n *ir.For) {
	switch n.Kind {
	case ir.Parallel:
		p.parallel(n)
	case ir.Vector:
		p.lane, p.lanes = n.Var, n.Extent
		p.block(n.Body)
		p.lane, p.lanes = nil, 1
	default:
		p.serial(n)
	}
}

func (p *printer) serial(n *ir.For) {
	v := p.varName(n.Var)
	first, end, step := "0", fmt.Sprint(n.Extent), v+"++"
	if r := n.Range; r != nil {
		first, end = p.scalar(r.First), p.scalar(r.End)
		if r.Every > 1 {
			step = fmt.Sprintf("%s += %d", v, r.Every)
		}
	}
	p.line("for (int64_t %s = %s; %s < %s; %s) {", v, first, v, end, step)
	p.loops++
	p.depths[n.Var] = p.loops
	p.nested(n.Body)
	p.loops--
	p.line("}")
}

// alloc declares a scratch buffer.
func (p *printer) alloc(b *ir.Buffer) {
	name := p.kernel.fresh("s")
	t := cprint.TypeOf(b.Tensor.DType).Scalar
	delete(p.registers, b.Tensor) // another version of these loops may place it elsewhere
	switch b.Space {
	case ir.Register:
		p.registers[b.Tensor] = &register{Buffer: b, name: name}
		p.variables(b, name)
		return
	case ir.Tile: // it has a number
		return
	case ir.Stack:
		p.line("_Alignas(64) %s %s[%d];", t, name, b.Room())
	case ir.Worker:
		p.line("%s *const %s = (%s *)(own + %d);", t, name, t, b.OffsetBytes)
	case ir.Workspace:
		p.line("%s *const %s = (%s *)(shared + %d);", t, name, t, b.OffsetBytes)
	default:
		panic(fmt.Sprintf("codegen: buffer %s lies in %v", b.Tensor.Name, b.Space))
	}
	p.memory[b.Tensor] = name
	p.arrays[b.Tensor] = b.Space == ir.Stack
}

// variables declares the variables of a buffer in registers.
func (p *printer) variables(b *ir.Buffer, name string) {
	for _, s := range b.Slots {
		t := cprint.TypeOf(b.Tensor.DType).Scalar
		if s.Lanes > 1 {
			t = p.unit.vector(b.Tensor.DType, s.Lanes)
		}
		p.line("%s %s_%d;", t, name, s.Base)
	}
}

// buffer returns the name of a buffer in memory.
func (p *printer) buffer(t *expr.Tensor) string {
	name, ok := p.memory[t]
	if !ok {
		panic(fmt.Sprintf("codegen: buffer %s is not in scope", t.Name))
	}
	return name
}

func (p *printer) store(n *ir.Store) {
	if p.lane != nil {
		p.storeVector(n, p.vector(n.Value))
		return
	}
	value := p.scalar(n.Value)
	at := expr.Linearize(n.Index)
	if reg := p.registers[n.Buffer.Tensor]; reg != nil {
		p.line("%s = %s;", reg.lane(at.Const), value)
		return
	}
	p.line("%s = %s;", p.element(n.Buffer.Tensor, at), value)
}

// storeVector stores a vector whose lanes are contiguous.
func (p *printer) storeVector(n *ir.Store, value string) {
	at := expr.Linearize(n.Index).Plus(expr.Linearize(p.lane), -1)
	if reg := p.registers[n.Buffer.Tensor]; reg != nil {
		p.line("%s = %s;", reg.vector(at.Const, p.lanes), value)
		return
	}
	if n.Streamed {
		p.line("%s(&%s, %s);", p.unit.streaming(n.Buffer.Tensor.DType, p.lanes), p.element(n.Buffer.Tensor, at), value)
		return
	}
	t := p.unit.vector(n.Buffer.Tensor.DType, p.lanes)
	p.line("*(%s_mem *)&%s = %s;", t, p.element(n.Buffer.Tensor, at), value)
}

// define prints a value that is held in a variable.
func (p *printer) define(n *ir.Define) {
	var t, code string
	if n.Lane == nil {
		t, code = cprint.TypeOf(n.Buffer.Tensor.DType).Scalar, p.scalar(n.Value)
	} else {
		p.lane, p.lanes = n.Lane, n.Lane.Extent
		t, code = p.unit.vector(n.Buffer.Tensor.DType, p.lanes), p.vector(n.Value)
		p.lane, p.lanes = nil, 1
	}
	name := p.kernel.fresh("t")
	p.registers[n.Buffer.Tensor] = &register{Buffer: n.Buffer, name: name, defined: true, depth: p.loops}
	p.line("const %s %s = %s;", t, name, code)
}
