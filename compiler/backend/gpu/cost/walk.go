package cost

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
)

// tries is the number of points at which accesses are sampled.
const tries = 4

// walker traverses a launch and accumulates its work.
type walker struct {
	to *Launch
	// spaces holds the memories of the buffers that the launch allocates. Other buffers are in global memory.
	spaces map[*expr.Tensor]ir.Space
	// samples holds the sampled points, all at the current statement. Their variables are those of the enclosing
	// loops.
	samples [tries]sample
	// times is how often the threads of a block execute the current statement, threads their number.
	times   float64
	threads int64
	// loops holds the enclosing loops within the loop over threads, outermost first; depth counts all enclosing loops.
	loops []*ir.For
	depth int
	// matrices is the enclosing loop over matrices, if any.
	matrices *ir.For
}

func newWalker(l *Launch) *walker {
	w := &walker{to: l, spaces: map[*expr.Tensor]ir.Space{}, times: 1, threads: 1}
	for k := range w.samples {
		w.samples[k] = sample{map[*expr.Var]*lanes{}, everyLane}
	}
	return w
}

func (w walker) block(b ir.Block) {
	for _, st := range b {
		switch n := st.(type) {
		case *ir.For:
			w.loop(n)
		case *ir.If:
			w.branch(n)
		case *ir.Let:
			for k := range w.samples {
				v := w.samples[k].eval(n.Value)
				w.samples[k].vars[n.Var] = &v
			}
			w.value(n.Value)
		case *ir.Alloc:
			w.alloc(n.Buffer)
		case *ir.Copy:
			w.copied(n)
		case *ir.Call:
			if c, _ := nvidia.BoxOf(n); c != nil {
				w.box(c)
			}
		case *ir.Store:
			w.store(n)
		}
	}
}

// alloc records the memory of a buffer. A buffer that is filled in a loop is refilled in each of its steps.
func (w walker) alloc(b *ir.Buffer) {
	w.spaces[b.Tensor] = b.Space
	if b.Space == ir.Shared {
		w.to.Steps = max(w.to.Steps, w.times)
		w.to.StepBytes += float64(b.Bytes())
	}
}

// golden spreads the sample points of nested loops evenly.
const golden = 0.6180339887498949

// loop visits the body of a loop once, for all of its iterations.
func (w walker) loop(n *ir.For) {
	inner := w
	inner.depth++
	for k := range w.samples {
		_, at := math.Modf((float64(k)+0.5)/tries + golden*float64(w.depth))
		inner.samples[k].vars[n.Var], inner.samples[k].active = w.samples[k].through(n, at)
	}
	switch n.Kind {
	case ir.Threads:
		inner.threads, inner.loops = n.Extent, nil
	case ir.Blocks:
	case ir.Matrices:
		inner.matrices = n
		fallthrough
	default:
		inner.times *= often(n)
		inner.loops = append(w.loops[:len(w.loops):len(w.loops)], n)
	}
	inner.block(n.Body)
}

// often returns the average number of executions of a loop's body.
func often(n *ir.For) float64 {
	if n.Range != nil {
		return n.Range.Mean
	}
	return float64(n.Extent)
}

// through returns the values of a loop's variable at a fraction of its range, and the threads that are active there.
func (s *sample) through(n *ir.For, at float64) (*lanes, uint32) {
	var v lanes
	if n.Kind != ir.Threads {
		first, count, every := int64(0), n.Extent, int64(1)
		if n.Range != nil {
			first, every = s.eval(n.Range.First)[0], n.Range.Every
			count = (s.eval(n.Range.End)[0] - first + every - 1) / every
		}
		for k := range v {
			v[k] = first + every*max(0, min(int64(at*float64(count)), count-1))
		}
		return &v, s.active
	}
	warps := (n.Extent + width - 1) / width
	first := min(int64(at*float64(warps)), warps-1) * width
	active := uint32(0)
	for k := range v {
		if v[k] = first + int64(k); v[k] < n.Extent {
			active |= 1 << k
		}
	}
	return &v, active
}

// branch visits both branches, weighted by how often the condition holds in the samples.
func (w walker) branch(n *ir.If) {
	w.value(n.Cond)
	for _, way := range []struct {
		holds bool
		body  ir.Block
	}{{true, n.Then}, {false, n.Else}} {
		if len(way.body) == 0 {
			continue
		}
		if inner, share := w.where(n.Cond, way.holds); share > 0 {
			inner.times *= share
			inner.block(way.body)
		}
	}
}

// where returns the walker restricted to threads for which a condition holds, and the fraction of samples that have
// any.
func (w walker) where(cond expr.Expr, holds bool) (walker, float64) {
	some := 0.0
	for k := range w.samples {
		if w.samples[k] = w.samples[k].where(cond, holds); w.samples[k].active != 0 {
			some++
		}
	}
	return w, some / tries
}

// warps returns the number of warps at the current statement.
func (w walker) warps() float64 { return float64((w.threads + width - 1) / width) }

// share returns the fraction of a warp's existing threads that are active.
func (w walker) share() float64 {
	active := 0
	for k := range w.samples {
		active += w.samples[k].threads()
	}
	return float64(active) / float64(tries*min(width, w.threads))
}

// once returns how often a value that depends on indices is computed. Compilers hoist it out of enclosing unrolled
// loops that do not change it.
func (w walker) once(depends ...expr.Expr) float64 {
	times := w.times
	for k := len(w.loops) - 1; k >= 0; k-- {
		n := w.loops[k]
		if n.Kind != ir.Unrolled && n.Kind != ir.Vector && n.Kind != ir.Matrices {
			break
		}
		used := false
		for _, e := range depends {
			used = used || expr.Uses(e, n.Var)
		}
		if !used {
			times /= float64(n.Extent)
		}
	}
	return times
}

// store counts the computation and the store of a statement.
func (w walker) store(n *ir.Store) {
	if op, term, ok := n.Step(); ok && w.spaces[n.Buffer.Tensor] == ir.Private {
		w.step(op, term, n)
		return
	}
	w.value(n.Value)
	w.access(n.Buffer.Tensor, n.Index, n.Buffer.Tensor.DType.Bytes(), true)
	w.code(1)
}

// step counts a step of a sum or another reduction whose result stays in registers.
func (w walker) step(op expr.BinaryOp, term expr.Expr, n *ir.Store) {
	done := w.times * float64(w.threads) * w.share()
	product := op == expr.Add && isProduct(term)
	switch {
	case product && w.matrices != nil:
		w.to.Matrix += done * products(w.matrices.Format)
		w.to.MatrixBits = 32 / float64(w.matrices.Format.Packed())
	case product && n.Buffer.Tensor.DType.IsFloat():
		w.to.Operations.MultiplyAdds += done
	case product:
		w.to.Operations.Integers += done
	default:
		w.to.Operations.kind(op.Work(), n.Buffer.Tensor.DType.IsFloat(), done)
	}
	if product {
		factors := term.(*expr.Binary)
		w.value(factors.A)
		w.value(factors.B)
	} else {
		w.value(term)
	}
	w.code(1)
}

// code counts printed instructions.
func (w walker) code(n float64) {
	for _, l := range w.loops {
		if l.Kind == ir.Unrolled || l.Kind == ir.Vector {
			n *= float64(l.Extent)
		}
	}
	w.to.Code += n
}

// value counts the operations and loads of an expression. Common subexpressions that compilers eliminate count once.
func (w walker) value(e expr.Expr) {
	switch n := e.(type) {
	case *expr.Load:
		w.access(n.Tensor, n.Index[0], n.Tensor.DType.Bytes(), false)
	case *expr.Binary:
		w.to.Operations.binary(n, w.each(e))
		w.value(n.A)
		w.value(n.B)
	case *expr.Unary:
		w.to.Operations.kind(n.Op.Work(), n.A.DType().IsFloat(), w.each(e))
		w.value(n.A)
	case *expr.Cast:
		if !w.holds(n.A.DType()) {
			w.to.Operations.Casts += w.each(e)
		}
		w.value(n.A)
	case expr.Node: // such as another thread's value
		w.to.Operations.Integers += w.each(e)
		for _, operand := range n.Operands() {
			w.value(operand)
		}
	case *expr.Select:
		w.to.Operations.Selects += w.each(e)
		w.value(n.Cond)
		for _, way := range []struct {
			holds bool
			value expr.Expr
		}{{true, n.A}, {false, n.B}} {
			if inner, share := w.where(n.Cond, way.holds); share > 0 {
				inner.times *= share
				inner.value(way.value)
			}
		}
	}
}

// each returns how often the threads of a block compute a value.
func (w walker) each(e expr.Expr) float64 { return w.once(e) * float64(w.threads) * w.share() }

// fragmentThreads is the number of threads that share a row of a fragment.
const fragmentThreads = 4

// access counts a load or store of one element.
func (w walker) access(t *expr.Tensor, index expr.Expr, bytes int64, stored bool) {
	space, own := w.spaces[t]
	if own && space == ir.Private {
		return
	}
	if w.matrices != nil && w.matrices.Format.Warpgroup() && own && space == ir.Shared && !stored {
		return // matrix instructions load it
	}
	w.address(index)
	times := w.once(index)
	if m, ok := w.loaded(t, index); ok && own && space == ir.Shared && !stored {
		w.to.Local.add(m.traffic(times, w.warps()))
		return
	}
	if w.matrices != nil && !stored {
		// Each thread loads a part of its sums' operands, and registers hold several elements.
		times /= float64(fragmentThreads * w.matrices.Format.Packed())
		bytes *= w.matrices.Format.Packed()
	}
	to := &w.to.Global
	switch {
	case own && space == ir.Shared:
		to = &w.to.Local
	case stored:
		to = &w.to.Stored
	}
	to.add(w.traffic(index, t.DType.Bytes(), bytes, times, own && space == ir.Shared))
}

// traffic returns the traffic of an instruction that threads execute the given number of times.
func (w walker) traffic(index expr.Expr, size, bytes int64, times float64, shared bool) Traffic {
	units, asked := 0, 0
	for k := range w.samples {
		s := &w.samples[k]
		at := s.eval(index)
		asked += s.threads()
		if shared {
			units += Turns(s.active, &at, size, bytes)
		} else {
			units += s.sectors(&at, size, bytes)
		}
	}
	requests := times * w.warps()
	return Traffic{Requests: requests, Bytes: requests * float64(asked) / tries * float64(bytes), Units: requests * float64(units) / tries}
}

// address counts the arithmetic of an index: quotients, remainders and conditions. Sums are part of the access.
func (w walker) address(index expr.Expr) {
	expr.Walk(index, func(e expr.Expr) {
		if n, ok := e.(*expr.Binary); ok && n.Op != expr.Add && n.Op != expr.Sub && n.Op != expr.Mul {
			w.to.Operations.kind(n.Op.Work(), false, w.each(e))
		}
	})
}

// copied counts a copy of neighbours to shared memory.
func (w walker) copied(n *ir.Copy) {
	valid, share := w, 1.0
	if n.Valid != nil {
		w.address(n.Valid)
		valid, share = w.where(n.Valid, true)
	}
	size := n.From.Tensor.DType.Bytes()
	bytes := size * n.Elements
	w.address(n.Index)
	w.address(n.From.Index[0])
	if share > 0 {
		valid.times *= share
		w.to.Global.add(valid.traffic(n.From.Index[0], size, bytes, valid.times, false))
	}
	w.to.Local.add(w.traffic(n.Index, n.To.Tensor.DType.Bytes(), bytes, w.times, true))
	copies := w.times * float64(w.threads) * w.share()
	w.to.Copies += copies
	if n.To.Steps > 1 {
		w.to.Asynchronous += copies
	}
	w.code(2)
}

// box counts the copy of a box, which a single thread starts.
func (w walker) box(c *ir.Call) {
	bytes, panelBytes := float64(nvidia.BoxBytes(c)), float64(c.Args[1].Map.PanelBytes)
	sectors := bytes / panelBytes * math.Ceil(panelBytes/sectorBytes)
	w.to.Global.add(Traffic{Requests: w.times, Bytes: w.times * bytes, Units: w.times * sectors})
	w.to.Local.add(Traffic{Bytes: w.times * bytes, Units: w.times * bytes / turnBytes})
	w.to.Copies += w.times
	if c.Args[0].Buffer.Steps > 1 {
		w.to.Asynchronous += w.times
	}
	w.code(2)
}
