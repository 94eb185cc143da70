package pass

import (
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// CSE computes common subexpressions of straight-line code once. It defines a register for each vector and scalar that
// a block loads from memory, and for each value loaded under a condition, which an unrolled tile uses many times and
// would branch on each time. Values only needed under a condition are loaded there. A store invalidates the values
// loaded from its buffer; distinct buffers do not alias. C compilers cannot infer that: they ignore restrict on
// pointers that are not parameters, and reload after each store.
func CSE(f *ir.Func) *ir.Func {
	c := &eliminator{keys: keys{vars: map[*expr.Var]int{}, tensors: map[*expr.Tensor]int{}}}
	return f.With(c.block(f.Body, ir.Allocated{}))
}

// eliminator holds the values available at the current statement.
type eliminator struct {
	keys keys
	// known maps expression keys to values in registers.
	known map[string]known
	// same maps each redundant register to the one that replaces it.
	same map[*expr.Tensor]*ir.Buffer
	// in holds the allocated buffers.
	in ir.Allocated
	// out collects the rewritten block.
	out ir.Block
	// lane is the variable of the surrounding vector loop, or nil; guards counts the surrounding conditions.
	lane   *expr.Var
	guards int
}

// known is a value in a register and the buffers that it was loaded from.
type known struct {
	buffer *ir.Buffer
	from   []*expr.Tensor
}

// block rewrites a block. It starts without known values, since memory may have changed since the enclosing block
// loaded them, and its own values end with it.
func (c *eliminator) block(b ir.Block, in ir.Allocated) ir.Block {
	outer := *c
	c.known, c.same, c.in, c.out = map[string]known{}, map[*expr.Tensor]*ir.Buffer{}, maps.Clone(in), nil
	for _, st := range b {
		st = c.stmt(st)
		if st != nil {
			c.out = append(c.out, st)
		}
	}
	out := c.out
	*c = outer
	return out
}

// stmt rewrites a statement; it returns nil if the statement is redundant.
func (c *eliminator) stmt(st ir.Stmt) ir.Stmt {
	switch n := st.(type) {
	case *ir.Alloc:
		c.in[n.Buffer.Tensor] = n.Buffer
	case *ir.Let:
		return &ir.Let{Var: n.Var, Value: c.scalar(n.Value)}
	case *ir.If:
		cond := c.scalar(n.Cond)
		st = &ir.If{Cond: cond, Then: c.block(n.Then, c.in), Else: c.block(n.Else, c.in)}
		c.forget()
		return st
	case *ir.For:
		if n.Kind == ir.Vector {
			return c.vectorLoop(n)
		}
		st = n.With(c.block(n.Body, c.in))
		c.forget()
		return st
	case *ir.Define:
		return c.define(n)
	case *ir.Store:
		return c.store(n)
	case *ir.Call:
		return c.call(n)
	}
	return st
}

func (c *eliminator) vectorLoop(n *ir.For) ir.Stmt {
	c.lane = n.Var
	defer func() { c.lane = nil }()
	return n.With(ir.Block{c.store(n.Body[0].(*ir.Store))})
}

func (c *eliminator) store(n *ir.Store) ir.Stmt {
	done := *n
	done.Value = c.value(n.Value)
	done.Index = c.index(n.Index)
	if n.Streamed {
		c.forget()
	}
	c.stored(n.Buffer)
	return &done
}

// call rewrites the operands of an instruction.
func (c *eliminator) call(n *ir.Call) ir.Stmt {
	done := ir.Exec(n.Instruction, slices.Clone(n.Args)...)
	for k := range done.Args {
		a := &done.Args[k]
		if a.Buffer != nil && n.Params[k].Use == ir.Read {
			a.Buffer = c.register(a.Buffer)
			a.Tensor = a.Buffer.Tensor
		}
		a.Index = c.index(a.Index)
	}
	if to := ir.Written(done); to != nil {
		c.stored(to)
	}
	return done
}

// register returns the register that replaces b.
func (c *eliminator) register(b *ir.Buffer) *ir.Buffer {
	if kept := c.same[b.Tensor]; kept != nil {
		return kept
	}
	return b
}

// define keeps and records a definition unless its value is already known.
func (c *eliminator) define(n *ir.Define) ir.Stmt {
	key := c.keys.of(n.Value, n.Lane)
	if k, ok := c.known[key]; ok {
		c.same[n.Buffer.Tensor] = k.buffer
		return nil
	}
	c.known[key] = known{n.Buffer, cseTensors(n.Value)}
	return n
}

// value rewrites the value of a store: a scalar, or a vector inside a vector loop.
func (c *eliminator) value(e expr.Expr) expr.Expr {
	if c.lane == nil || !expr.Uses(e, c.lane) {
		return c.scalar(e)
	}
	switch n := e.(type) {
	case *ir.Lanes:
		return c.lanes(n)
	case *ir.Picked:
		return c.picked(n)
	case *ir.Folded:
		return n
	case *expr.Load:
		return c.load(n)
	case *expr.Select:
		if !expr.Uses(n.Cond, c.lane) {
			return c.chosen(n, c.value)
		}
	}
	return expr.Map(e, c.value)
}

// lanes rewrites lanes that are computed one by one.
func (c *eliminator) lanes(n *ir.Lanes) expr.Expr {
	lane := c.lane
	c.lane = nil
	defer func() { c.lane = lane }()
	return n.Map(c.scalar)
}

// picked keeps both the source vectors and the picked lanes in registers. Other steps of a sum pick other lanes of
// the same vectors, and other window positions pick the same lanes.
func (c *eliminator) picked(n *ir.Picked) expr.Expr {
	if c.guards > 0 {
		return n
	}
	from := make([]*expr.Tensor, len(n.From))
	for k, l := range n.From {
		from[k] = l.Tensor
	}
	lane, kept := c.lane, *n
	if n.Repeats() { // broadcast instructions read their operand from memory
		return c.keep(&kept, from)
	}
	c.lane, kept.From = &expr.Var{Name: "k", Extent: n.Width}, slices.Clone(n.From)
	for k := range n.From {
		source := c.load(n.Source(k, c.lane)).(*expr.Load)
		kept.From[k] = &expr.Load{Tensor: source.Tensor, Index: []expr.Expr{expr.I(0)}}
	}
	c.lane = lane
	return c.keep(&kept, from)
}

// scalar rewrites a value without lanes.
func (c *eliminator) scalar(e expr.Expr) expr.Expr {
	lane := c.lane
	c.lane = nil
	defer func() { c.lane = lane }()
	switch n := e.(type) {
	case *expr.Load:
		return c.load(n)
	case *ir.Across:
		c.lane = n.Lane
		return n.Map(c.value)
	case *expr.Select:
		return c.chosen(n, c.scalar)
	case *expr.Binary:
		if (n.Op == expr.And || n.Op == expr.Or) && n.DType() == array.Bool { // the left guards the right
			return expr.Map(n, alternate(c.scalar, c.guarded(c.scalar)))
		}
	}
	return expr.Map(e, c.scalar)
}

// alternate applies first to the first operand and others to the rest.
func alternate(first, others func(expr.Expr) expr.Expr) func(expr.Expr) expr.Expr {
	begun := false
	return func(e expr.Expr) expr.Expr {
		if begun {
			return others(e)
		}
		begun = true
		return first(e)
	}
}

// guarded wraps f for values that are only computed under a condition.
func (c *eliminator) guarded(f func(expr.Expr) expr.Expr) func(expr.Expr) expr.Expr {
	return func(e expr.Expr) expr.Expr {
		c.guards++
		defer func() { c.guards-- }()
		return f(e)
	}
}

// chosen rewrites a Select whose condition is uniform across lanes, and rewrites its sides with f.
func (c *eliminator) chosen(n *expr.Select, f func(expr.Expr) expr.Expr) expr.Expr {
	done := expr.Map(n, alternate(c.scalar, c.guarded(f)))
	from := cseTensors(n)
	if len(from) == 0 || slices.ContainsFunc(from, c.in.InRegisters) {
		return done
	}
	return c.keep(done, from)
}

// load rewrites a load from memory. Registers are read directly.
func (c *eliminator) load(n *expr.Load) expr.Expr {
	if b := c.same[n.Tensor]; b != nil {
		return &expr.Load{Tensor: b.Tensor, Index: n.Index}
	}
	if c.in.InRegisters(n.Tensor) {
		return n
	}
	return c.keep(&expr.Load{Tensor: n.Tensor, Index: []expr.Expr{c.index(n.Index[0])}}, []*expr.Tensor{n.Tensor})
}

// index rewrites an index, which is a scalar even where lanes are added to it.
func (c *eliminator) index(e expr.Expr) expr.Expr {
	if len(expr.Loads(e)) == 0 {
		return e
	}
	return c.scalar(e)
}

// keep defines a register for a value, unless the value is known or guarded.
func (c *eliminator) keep(e expr.Expr, from []*expr.Tensor) expr.Expr {
	if c.guards > 0 {
		return e
	}
	key := c.keys.of(e, c.lane)
	k, ok := c.known[key]
	if !ok {
		k = known{register(e, c.lane), from}
		c.known[key] = k
		c.out = append(c.out, &ir.Define{Buffer: k.buffer, Lane: c.lane, Value: e})
	}
	if c.lane == nil {
		return k.buffer.Tensor.At(expr.I(0))
	}
	return k.buffer.Tensor.At(c.lane)
}

func register(e expr.Expr, lane *expr.Var) *ir.Buffer {
	if lane == nil {
		return ir.NewRegister("t", e.DType(), 1)
	}
	return ir.NewRegister("t", e.DType(), lane.Extent)
}

// cseTensors returns the tensors that an expression loads from.
func cseTensors(e expr.Expr) (list []*expr.Tensor) {
	for _, l := range expr.Loads(e) {
		list = append(list, l.Tensor)
	}
	return list
}

// forget drops all known values, since memory may have changed.
func (c *eliminator) forget() { clear(c.known) }

// stored drops the values that were loaded from b.
func (c *eliminator) stored(b *ir.Buffer) {
	maps.DeleteFunc(c.known, func(_ string, k known) bool { return slices.Contains(k.from, b.Tensor) })
}
