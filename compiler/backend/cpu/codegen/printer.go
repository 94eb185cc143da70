package codegen

import (
	"fmt"
	"maps"
	"strings"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// maxStackBytes is the largest scratch buffer kept on the stack, maxFrameBytes the most that all of a function's take;
// others lie in the workspace.
const (
	maxStackBytes = 16 << 10
	maxFrameBytes = 128 << 10
)

// scratchAlign is the alignment of scratch buffers in the workspace.
const scratchAlign = 64

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
	// worker is set in bodies of parallel loops.
	worker bool
	// used is the scratch in use at this point of the function, in bytes; frame is what lies on the stack.
	used, frame int64
}

// register is a scratch buffer kept in named variables.
type register struct {
	name  string
	slots []slot
}

func (r *register) find(at int64) (slot, string) {
	for _, s := range r.slots {
		if at >= s.base && at < s.base+s.lanes {
			return s, fmt.Sprintf("%s_%d", r.name, s.base)
		}
	}
	panic(fmt.Sprintf("codegen: %s has no element %d", r.name, at))
}

func (r *register) lane(at int64) string {
	s, name := r.find(at)
	if s.lanes == 1 {
		return name
	}
	return fmt.Sprintf("%s[%d]", name, at-s.base)
}

func (r *register) vector(base, lanes int64) (string, bool) {
	s, name := r.find(base)
	return name, s.base == base && s.lanes == lanes
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
	used := p.used
	for k := 0; k < len(b); k++ {
		if t := p.transposed(b[k:]); t != nil {
			p.transpose(t)
			k += len(t.columns) - 1
			continue
		}
		p.stmt(b[k], b[k+1:])
	}
	p.used = used
}

func (p *printer) stmt(st ir.Stmt, rest ir.Block) {
	switch n := st.(type) {
	case *ir.Alloc:
		p.alloc(n.Buffer, rest)
	case *ir.Let:
		p.line("const int64_t %s = %s;", p.varName(n.Var), p.scalar(n.Value))
		p.depths[n.Var] = len(p.loops)
	case *ir.If:
		p.branch(n)
	case *ir.For:
		p.loop(n)
	case *ir.Store:
		p.store(n)
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
	case ir.Dot:
		p.dot(n)
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

// alloc makes room for a scratch buffer: named variables when every access has a constant index, else an array on the
// stack, else a part of the workspace.
func (p *printer) alloc(b *ir.Buffer, scope ir.Block) {
	name := p.kernel.fresh("s")
	t := ctypes[b.Tensor.DType].scalar
	if found, ok := slots(scope, b); ok {
		p.registers[b.Tensor] = &register{name: name, slots: found}
		for _, s := range found {
			typ := t
			if s.lanes > 1 {
				typ = p.unit.vector(b.Tensor.DType, s.lanes)
			}
			p.line("%s %s_%d;", typ, name, s.base)
		}
		if len(found) >= tileSlots {
			p.fetchEnd(scope)
		}
		return
	}
	p.memory[b.Tensor] = name
	delete(p.registers, b.Tensor) // another version of these loops may have had it there
	p.allocated(b)
	if b.Bytes() <= maxStackBytes && p.frame+b.Bytes() <= maxFrameBytes && !hasParallel(scope) {
		p.frame += b.Bytes()
		p.line("_Alignas(64) %s %s[%d];", t, name, b.Elements())
		return
	}
	offset := p.used
	p.used += (b.Bytes() + scratchAlign - 1) / scratchAlign * scratchAlign
	if p.worker {
		p.kernel.workerBytes = max(p.kernel.workerBytes, p.used)
		p.line("%s *const %s = (%s *)(own + %d);", t, name, t, offset)
		return
	}
	p.kernel.sharedBytes = max(p.kernel.sharedBytes, p.used)
	p.kernel.shared[b.Tensor] = offset
	p.line("%s *const %s = (%s *)(shared + %d);", t, name, t, offset)
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
	if p.horizontal(n) {
		return
	}
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
