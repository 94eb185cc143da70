package cost

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// tries is in how many places accesses are looked at.
const tries = 4

// walker goes through a launch and adds up its work.
type walker struct {
	to *Launch
	// spaces are where buffers lie that the launch allocates; others lie in global memory.
	spaces map[*expr.Tensor]ir.Space
	// samples are the places, all in the statement that is looked at. Their variables are those of the loops around.
	samples [tries]sample
	// times is how often the threads of a block come by here, threads how many of them.
	times   float64
	threads int64
	// loops are those around, within the loop on threads, outermost first; depth counts all that are around.
	loops []*ir.For
	depth int
	// matrices is the loop on matrices around, if any.
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
		case *ir.CopyBox:
			w.copiedBox(n)
		case *ir.Store:
			w.store(n)
		}
	}
}

// alloc notes where a buffer lies. One that is filled in a loop is filled anew in each of its steps.
func (w walker) alloc(b *ir.Buffer) {
	w.spaces[b.Tensor] = b.Space
	if b.Space == ir.Shared {
		w.to.Steps = max(w.to.Steps, w.times)
		w.to.StepBytes += float64(b.Bytes())
	}
}

// golden spreads the places of nested loops evenly.
const golden = 0.6180339887498949

// loop goes through the body of a loop once, for all of its iterations.
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

// often is how often the body of a loop is computed, on average.
func often(n *ir.For) float64 {
	if n.Range != nil {
		return n.Range.Mean
	}
	return float64(n.Extent)
}

// through is the values of a loop's variable at a part of the way through it, and the threads that are active there.
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

// branch goes both ways, each as often as its condition holds in the samples.
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

// where is the walker with those threads active for which a condition holds, and which part of the samples has any.
func (w walker) where(cond expr.Expr, holds bool) (walker, float64) {
	some := 0.0
	for k := range w.samples {
		if w.samples[k] = w.samples[k].where(cond, holds); w.samples[k].active != 0 {
			some++
		}
	}
	return w, some / tries
}

// warps is how many warps come by.
func (w walker) warps() float64 { return float64((w.threads + width - 1) / width) }

// share is which part of a warp's threads is active, of those that there are.
func (w walker) share() float64 {
	active := 0
	for k := range w.samples {
		active += w.samples[k].threads()
	}
	return float64(active) / float64(tries*min(width, w.threads))
}

// once is how often something is done whose value depends on an index: compilers do it once for all iterations of the
// unrolled loops around that do not change it.
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

// store counts what a statement computes and stores.
func (w walker) store(n *ir.Store) {
	if op, term, ok := n.Step(); ok && w.spaces[n.Buffer.Tensor] == ir.Private {
		w.step(op, term, n)
		return
	}
	w.value(n.Value)
	w.access(n.Buffer.Tensor, n.Index, n.Buffer.Tensor.DType.Bytes(), true)
	w.code(1)
}

// step counts a step of a sum, or of another reduction, whose result stays in registers.
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

// code counts instructions that are written out.
func (w walker) code(n float64) {
	for _, l := range w.loops {
		if l.Kind == ir.Unrolled || l.Kind == ir.Vector {
			n *= float64(l.Extent)
		}
	}
	w.to.Code += n
}

// value counts what an expression computes and loads. What compilers compute once is counted once.
func (w walker) value(e expr.Expr) {
	switch n := e.(type) {
	case *expr.Load:
		w.access(n.Tensor, n.Index[0], n.Tensor.DType.Bytes(), false)
	case *expr.Binary:
		w.to.Operations.binary(n, w.each(e))
		w.value(n.A)
		w.value(n.B)
	case *expr.Unary:
		w.to.Operations.unary(n, w.each(e))
		w.value(n.A)
	case *expr.Cast:
		if !w.holds(n.A.DType()) {
			w.to.Operations.Casts += w.each(e)
		}
		w.value(n.A)
	case expr.Node: // such as what another thread has
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

// each is how many threads of a block compute a value, however often.
func (w walker) each(e expr.Expr) float64 { return w.once(e) * float64(w.threads) * w.share() }

// fragmentThreads is how many threads of a warp have a row of a fragment together.
const fragmentThreads = 4

// access counts a load or store of one element.
func (w walker) access(t *expr.Tensor, index expr.Expr, bytes int64, stored bool) {
	space, own := w.spaces[t]
	if own && space == ir.Private {
		return
	}
	if w.matrices != nil && w.matrices.Format.Warpgroup() && own && space == ir.Shared && !stored {
		return // no thread loads it
	}
	w.address(index)
	times := w.once(index)
	if m, ok := w.loaded(t, index); ok && own && space == ir.Shared && !stored {
		w.to.Local.add(m.traffic(times, w.warps()))
		return
	}
	if w.matrices != nil && !stored {
		// Each thread loads a part of what its sums take, and registers hold several elements.
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

// traffic is what an instruction moves that threads come by so often.
func (w walker) traffic(index expr.Expr, size, bytes int64, times float64, shared bool) Traffic {
	units, asked := 0, 0
	for k := range w.samples {
		s := &w.samples[k]
		at := s.eval(index)
		asked += s.threads()
		if shared {
			units += s.turns(&at, size, bytes)
		} else {
			units += s.sectors(&at, size, bytes)
		}
	}
	requests := times * w.warps()
	return Traffic{
		Requests: requests,
		Bytes:    requests * float64(asked) / tries * float64(bytes),
		Units:    requests * float64(units) / tries,
	}
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

// copiedBox counts a copy of a box, which one thread begins and none makes.
func (w walker) copiedBox(n *ir.CopyBox) {
	bytes := float64(n.Bytes())
	rows := bytes / float64(n.Map.PanelBytes)
	sectors := rows * math.Ceil(float64(n.Map.PanelBytes)/sectorBytes)
	w.to.Global.add(Traffic{Requests: w.times, Bytes: w.times * bytes, Units: w.times * sectors})
	w.to.Local.add(Traffic{Bytes: w.times * bytes, Units: w.times * bytes / turnBytes})
	w.to.Copies += w.times
	if n.To.Steps > 1 {
		w.to.Asynchronous += w.times
	}
	w.code(2)
}
