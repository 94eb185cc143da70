package vta

import (
	"fmt"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// stream is a kernel as the instructions that it issues and the loops around them.
type stream struct {
	*ir.Func
	// buffers lists those in scratchpads. Index is the number of a buffer's ring, Steps that of its slots, and
	// OffsetBytes where they begin.
	buffers []*ir.Buffer
	// memories holds the scratchpad of each, unless it is that of sums.
	memories map[*expr.Tensor]memory
}

// lowered lowers a schedule to instructions, ordered by tokens and placed in the scratchpads. An error names what the
// accelerator lacks.
func lowered(s *schedule.Schedule) (made *stream, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = fmt.Errorf("vta: %w", r.error)
		default:
			panic(r)
		}
	}()
	f, err := lower.Schedule(s)
	if err != nil {
		return nil, err
	}
	p := &stream{memories: map[*expr.Tensor]memory{}}
	t := &translator{stream: p, filled: map[*ir.Buffer]bool{}, packed: map[*expr.Tensor]bool{}, in: ir.Allocated{}, slots: 1}
	for _, c := range f.Prepared {
		t.packed[c.Buffer.Tensor] = true
	}
	ir.Visit(f.Body, func(st ir.Stmt) {
		if a, ok := st.(*ir.Alloc); ok {
			t.slots = max(t.slots, a.Buffer.Steps)
		}
	})
	p.Func = f.With(t.block(f.Body))
	p.WorkspaceBytes = workspaceBytes
	p.place()
	return p, nil
}

// failure is the panic value that ends a lowering; lowered returns its error.
type failure struct{ error }

func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// dump returns a kernel as loops, as instructions, and as C.
func dump(s *schedule.Schedule) (steps []backend.Step, err error) {
	begin := time.Now()
	add := func(name, text string) {
		steps = append(steps, backend.Step{Name: name, Text: text, Took: time.Since(begin)})
		begin = time.Now()
	}
	f, err := lower.Schedule(s)
	if err != nil {
		return nil, err
	}
	add("lower", f.Text())
	p, err := lowered(s)
	if err != nil {
		return steps, err
	}
	add("instructions", p.Text())
	var helpers cprint.Declarations
	source := p.text("kernel", &helpers)
	add(backend.Source, helpers.Text()+source)
	return steps, nil
}

// translator replaces nests by the instructions that mean the same.
type translator struct {
	*stream
	// slots is the number of slots of the buffers that pass from one unit to another.
	slots int64
	// filled holds the buffers that the load unit fills, packed the packed constants, and in what is in scratchpads.
	filled map[*ir.Buffer]bool
	packed map[*expr.Tensor]bool
	in     ir.Allocated
}

func (t *translator) block(b ir.Block) (out ir.Block) {
	var scope ir.Block
	for _, st := range b {
		switch n := st.(type) {
		case *ir.Alloc:
			t.add(n.Buffer, sums, 1)
			out = append(out, st)
		case *ir.For:
			out = append(out, t.loop(n)...)
		default:
			fail("a %T is not what the accelerator does", st)
		}
	}
	for _, st := range b {
		if a, ok := st.(*ir.Alloc); ok && t.filled[a.Buffer] {
			scope = append(scope, ir.Exec(release, ir.All(a.Buffer)))
		}
	}
	return append(out, scope...)
}

func (t *translator) loop(l *ir.For) ir.Block {
	if n, ok := ir.PerfectNestOf(l); ok {
		return t.nest(nest{n})
	}
	if !l.InOrder() {
		fail("the loop over %s is none of a host's", l.Var.Name)
	}
	return ir.Block{l.With(t.block(l.Body))}
}

// add adds a buffer with a number of slots.
func (t *translator) add(b *ir.Buffer, in memory, slots int64) {
	b.Index, b.Steps, t.in[b.Tensor] = len(t.buffers), slots, b
	t.buffers, t.memories[b.Tensor] = append(t.buffers, b), in
}

// nest translates a nest by what it stores and where.
func (t *translator) nest(n nest) ir.Block {
	to := n.Store.Buffer
	if to.Space != ir.Shared {
		return t.epilogue(n)
	}
	if _, _, ok := n.Store.Step(); ok {
		call := t.product(n)
		t.memories[call.Args[1].Tensor], t.memories[call.Args[2].Tensor] = inputs, weights
		return ir.Block{call}
	}
	if from, _, ok := schedule.CopyOf(n.Store.Value); ok && t.memories[from.Tensor] == 0 && t.in[from.Tensor] == nil {
		return t.fill(n)
	}
	if n.Guard != nil {
		fail("buffer %s is computed under a condition", to.Tensor.Name)
	}
	x := &selector{nest: n}
	x.compute(n.Store.Value, &value{n.access(to.Tensor, n.Store.Index), to}, 0)
	return t.computed(x)
}

// fill translates a copy from memory, which the load unit does in a slot that computations have released.
func (t *translator) fill(n nest) ir.Block {
	b := n.Store.Buffer
	if t.filled[b] {
		fail("buffer %s is filled in parts", b.Tensor.Name)
	}
	from, _, _ := schedule.CopyOf(n.Store.Value)
	call := n.load(t.packed[from.Tensor])
	t.filled[b], b.Steps = true, t.slots
	of := ir.All(b)
	return ir.Block{ir.Exec(acquire, of), call, ir.Exec(publish, of), ir.Exec(await, of)}
}

// computed returns the instructions that a selector emitted, after the buffers that they need.
func (t *translator) computed(x *selector) (out ir.Block) {
	for _, b := range x.made {
		t.add(b, sums, 1)
		out = append(out, &ir.Alloc{Buffer: b})
	}
	return append(out, x.calls...)
}

// epilogue translates a nest that stores results: vector instructions compute them in a scratchpad, from which the
// store unit copies them to memory.
func (t *translator) epilogue(n nest) ir.Block {
	if n.Loops[len(n.Loops)-1].Extent != block {
		fail("results are not computed in rows of %d", block)
	}
	elements := int64(1)
	for _, l := range n.Loops {
		elements *= l.Extent
	}
	if d := n.Store.Buffer.Tensor.DType; !slices.Contains(storable, d) {
		fail("results are %v", d)
	}
	b := &ir.Buffer{Tensor: ir.Flat("r", n.Store.Buffer.Tensor.DType, elements), Space: ir.Shared}
	x := &selector{nest: n}
	t.overwrite(x)
	x.compute(n.Store.Value, &value{access{b.Tensor, expr.I(0), n.dense()}, b}, 0)
	save := n.save(b)
	computed := t.computed(x)
	t.add(b, results, t.slots)
	of := ir.All(b)
	out := append(ir.Block{&ir.Alloc{Buffer: b}, ir.Exec(acquireResults, of)}, computed...)
	return append(out, ir.Exec(publishResults, of), ir.Exec(awaitResults, of), save, ir.Exec(releaseResults, of))
}

// overwrite lets the first temporary be the buffer of the sums, if they are read once, in order.
func (t *translator) overwrite(x *selector) {
	var found []*expr.Load
	for _, l := range expr.Loads(x.Store.Value) {
		if b := t.computedIn(l.Tensor); b != nil {
			found = append(found, l)
		}
	}
	if len(found) != 1 {
		return
	}
	from := found[0].Tensor
	if _, steps, err := x.linear(found[0].Index[0]); err == nil && slices.Equal(steps, x.dense()) && from.DType == array.Int32 {
		x.temporaries, x.last = []*ir.Buffer{t.computedIn(from)}, from
	}
}

// computedIn returns the buffer of a tensor that the accelerator computes, or nil.
func (t *translator) computedIn(x *expr.Tensor) *ir.Buffer {
	for _, b := range t.buffers {
		if b.Tensor == x && t.memories[x] == sums && !t.filled[b] {
			return b
		}
	}
	return nil
}

// slotBytes returns the room of a slot of a buffer.
func slotBytes(b *ir.Buffer) int64 { return (b.Bytes() + alignBytes - 1) / alignBytes * alignBytes }

// place places the buffers one after the other.
func (p *stream) place() {
	if len(p.buffers) > maxRings {
		fail("%d buffers are more than %d rings", len(p.buffers), maxRings)
	}
	var used [len(scratchpads)]int64
	for _, b := range p.buffers {
		m := p.memories[b.Tensor]
		b.OffsetBytes = used[m]
		used[m] += b.Steps * slotBytes(b)
	}
	for m, bytes := range used {
		if bytes > scratchpads[m] {
			fail("the schedule takes %d bytes of the scratchpad %s, which has %d", bytes, names[m], scratchpads[m])
		}
	}
}
