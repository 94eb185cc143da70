package codegen

import (
	"fmt"
	"maps"
	"strings"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// printer prints one C function.
type printer struct {
	unit   *Unit
	kernel *kernelPrinter
	out    strings.Builder
	indent int
	names  map[*expr.Var]string
	// lane is the variable of the vectorized loop being printed, nil outside of one.
	lane  *expr.Var
	lanes int64
	// loops are the serial loops around what is being printed, outermost first.
	loops []*ir.For
	// fetched has the elements that the innermost loop fetches or fetches behind, and the buffers whose next part it
	// fetches.
	fetched map[string]bool
	// stepped has the accumulators that the current step of the innermost loop has changed.
	stepped map[string]bool
	// filled has what is known of the scratch buffers that are fetched ahead.
	filled map[*expr.Tensor]*filled
	// registers has the buffers kept in named variables.
	registers map[*expr.Tensor]*register
	// memory has the C names of the buffers in memory that this function has pointers or arrays for.
	memory map[*expr.Tensor]string
	// temps has the variables of loads already done, until memory changes; nil inside a guard.
	temps map[string]temporary
	// pointers has the pointers into buffers that are in scope, by what they add up; depths is how many loops are
	// around the declaration of a variable.
	pointers map[string]string
	depths   map[*expr.Var]int
	guarded  int
	// streamed is set once something was stored past the caches.
	streamed bool
}

// register is a buffer in registers under its name.
type register struct {
	*ir.Buffer
	name string
}

func (r *register) find(at int64) (ir.Slot, string) {
	for _, s := range r.Slots {
		if at >= s.Base && at < s.Base+s.Lanes {
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

func (r *register) vector(base, lanes int64) (string, bool) {
	s, name := r.find(base)
	return name, s.Base == base && s.Lanes == lanes
}

func (p *printer) line(format string, args ...any) {
	for range p.indent {
		p.out.WriteString("  ")
	}
	fmt.Fprintf(&p.out, format, args...)
	p.out.WriteByte('\n')
}

// guard marks code that is only executed under a condition, until the returned function is called.
func (p *printer) guard() func() {
	p.guarded++
	return func() { p.guarded-- }
}

func (p *printer) varName(v *expr.Var) string {
	name, ok := p.names[v]
	if !ok {
		name = p.kernel.varName(v)
		p.names[v] = name
	}
	return name
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
		p.depths[n.Var] = len(p.loops)
	case *ir.If:
		p.branch(n)
	case *ir.For:
		p.loop(n)
	case *ir.Store:
		p.store(n)
	case *ir.Combine:
		p.combine(n)
	case *ir.DotProduct:
		p.dotProduct(n)
	case *ir.Transpose:
		p.transpose(n)
	case *ir.Prefetch:
		element := p.element(n.Tensor, n.Index)
		p.fetched[element] = true
		p.line("__builtin_prefetch(&%s, %d);", element, map[bool]int{true: 1}[n.Write])
	default:
		panic(fmt.Sprintf("codegen: unknown statement %T", st))
	}
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
	p.forget()
	outer := p.pointers
	p.pointers = maps.Clone(outer)
	p.block(b)
	p.pointers = outer
	p.forget()
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
	p.line("for (int64_t %s = 0; %s < %d; %s++) {", v, v, n.Extent, v)
	fetched, stepped := p.fetched, p.stepped
	p.loops, p.fetched, p.stepped = append(p.loops, n), map[string]bool{}, map[string]bool{}
	p.depths[n.Var] = len(p.loops)
	p.nested(n.Body)
	p.loops, p.fetched, p.stepped = p.loops[:len(p.loops)-1], fetched, stepped
	p.line("}")
}

// alloc declares a scratch buffer.
func (p *printer) alloc(b *ir.Buffer) {
	name := p.kernel.fresh("s")
	t := ctypes[b.Tensor.DType].scalar
	delete(p.registers, b.Tensor) // another version of these loops may have it elsewhere
	switch b.Space {
	case ir.Register:
		p.registers[b.Tensor] = &register{b, name}
		p.variables(b, name)
		return
	case ir.Stack:
		p.line("_Alignas(64) %s %s[%d];", t, name, b.Elements())
	case ir.Worker:
		p.line("%s *const %s = (%s *)(own + %d);", t, name, t, b.OffsetBytes)
	case ir.Workspace:
		p.line("%s *const %s = (%s *)(shared + %d);", t, name, t, b.OffsetBytes)
	default:
		panic(fmt.Sprintf("codegen: buffer %s lies in %v", b.Tensor.Name, b.Space))
	}
	p.memory[b.Tensor] = name
	p.allocated(b)
}

// variables declares those of a buffer in registers.
func (p *printer) variables(b *ir.Buffer, name string) {
	for _, s := range b.Slots {
		t := ctypes[b.Tensor.DType].scalar
		if s.Lanes > 1 {
			t = p.unit.vector(b.Tensor.DType, s.Lanes)
		}
		p.line("%s %s_%d;", t, name, s.Base)
	}
}

// buffer is the name of a buffer in memory.
func (p *printer) buffer(t *expr.Tensor) string {
	name, ok := p.memory[t]
	if !ok {
		panic(fmt.Sprintf("codegen: buffer %s is not in scope", t.Name))
	}
	return name
}

func (p *printer) store(n *ir.Store) {
	if p.lane != nil {
		p.vectorStore(n)
		return
	}
	value := p.scalar(n.Value)
	at := expr.Linearize(n.Index)
	if reg := p.registers[n.Buffer.Tensor]; reg != nil {
		p.line("%s = %s;", reg.lane(at.Const), value)
		return
	}
	p.line("%s = %s;", p.element(n.Buffer.Tensor, at), value)
	p.stored(n.Buffer.Tensor)
}

func (p *printer) vectorStore(n *ir.Store) {
	p.separate(n)
	at := expr.Linearize(n.Index)
	coef, linear := at.Coef(p.lane)
	if !linear || coef != 1 {
		p.scatter(n)
		return
	}
	p.storeVector(n, p.vector(n.Value))
}

// storeVector stores a vector whose lanes lie side by side.
func (p *printer) storeVector(n *ir.Store, value string) {
	at := expr.Linearize(n.Index).Plus(expr.Linearize(p.lane), -1)
	if reg := p.registers[n.Buffer.Tensor]; reg != nil {
		if name, ok := reg.vector(at.Const, p.lanes); ok {
			p.line("%s = %s;", name, value)
			return
		}
		panic("codegen: vector store does not fit its register")
	}
	if p.streams(n.Buffer, at) {
		p.stream(n.Buffer, at, value)
		p.forget()
		return
	}
	p.filling(n)
	t := p.unit.vector(n.Buffer.Tensor.DType, p.lanes)
	p.line("*(%s_mem *)&%s = %s;", t, p.element(n.Buffer.Tensor, at), value)
	p.stored(n.Buffer.Tensor)
}

// scatter stores the lanes one by one.
func (p *printer) scatter(n *ir.Store) {
	lane, lanes := p.lane, p.lanes
	p.lane, p.lanes = nil, 1
	defer func() { p.lane, p.lanes = lane, lanes }()
	for k := range lanes {
		at := expr.Simplifier{Values: map[*expr.Var]expr.Expr{lane: expr.I(k)}}
		p.store(&ir.Store{
			Buffer: n.Buffer,
			Index:  at.Simplify(n.Index),
			Value:  at.Simplify(n.Value),
		})
	}
}
