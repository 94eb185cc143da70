package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
)

// warpThreads is the number of threads of a warp, which exchange registers and hold the matrices of an instruction.
const warpThreads = 32

// Shuffle combines the partial results of neighbouring threads in registers. It applies to a buffer in which thread
// t computes element t and a marked loop combines those of neighbouring threads: a power of two, within one warp.
// The threads exchange values until each has the result, and the first one stores it. For a single result, that
// thread also executes the statements that follow. Other loops become plain and compute the same, as do all without
// exchange, for devices that have none.
func Shuffle(f *ir.Func, exchange bool) *ir.Func {
	return ir.MapLaunches(f, func(b ir.Block) ir.Block { return shuffleBlock(b, exchange) })
}

func shuffleBlock(b ir.Block, exchange bool) ir.Block {
	b = slices.Clone(b)
	for k := 0; k < len(b); k++ {
		if p, ok := shuffleMatch(b, k); ok && exchange {
			b[p.reader] = p.run()
			b = slices.Delete(b, p.writer, p.writer+1)
			b = slices.Delete(b, k, k+1)
			k--
			continue
		}
		switch n := b[k].(type) {
		case *ir.For:
			if n.Kind == ir.Lanewise {
				plain := n.With(n.Body)
				plain.Kind = ir.Serial
				n = plain
			}
			b[k] = n.With(shuffleBlock(n.Body, exchange))
		case *ir.If:
			b[k] = &ir.If{Cond: n.Cond, Then: shuffleBlock(n.Then, exchange), Else: shuffleBlock(n.Else, exchange)}
		}
	}
	return b
}

// partials describes partial results and the two loops over threads that use them.
type partials struct {
	buffer         *ir.Buffer
	writer, reader int
	compute        *ir.For
	combine        *ir.For
	// lanes is the number of threads that share a result.
	lanes int64
	op    expr.BinaryOp
	to    *ir.Store
	// rest holds the statements that the thread of a single result executes afterwards.
	rest ir.Block
}

// shuffleMatch finds the loops for the buffer that statement k of a block allocates.
func shuffleMatch(b ir.Block, k int) (*partials, bool) {
	a, ok := b[k].(*ir.Alloc)
	if !ok || a.Buffer.Tensor.DType.Bytes() < 4 {
		return nil, false
	}
	p := &partials{buffer: a.Buffer}
	for i := k + 1; i < len(b); i++ {
		n, isLoop := b[i].(*ir.For)
		_, isAlloc := b[i].(*ir.Alloc)
		switch {
		case !ir.Uses(b[i:i+1], a.Buffer.Tensor):
			if p.compute != nil && p.combine == nil && !isAlloc {
				return nil, false // it may change the inputs of the first loop
			}
		case !isLoop || n.Kind != ir.Threads || p.combine != nil:
			return nil, false
		case p.compute == nil:
			p.writer, p.compute = i, n
		default:
			p.reader, p.combine = i, n
		}
	}
	return p, p.combine != nil && p.computes() && p.combines()
}

// computes reports whether thread t of whole warps computes element t and stores nothing else.
func (p *partials) computes() bool {
	n := p.compute
	ok := n.Extent%warpThreads == 0 && p.buffer.Elements() == n.Extent
	ir.Visit(n.Body, func(st ir.Stmt) {
		switch x := st.(type) {
		case *ir.For, *ir.Let:
		case *ir.Store:
			ok = ok && x.Buffer.Tensor == p.buffer.Tensor && isThread(x.Index, n)
		default:
			ok = false
		}
	})
	ir.VisitExprs(n.Body, func(e expr.Expr) {
		for _, l := range expr.Loads(e) {
			ok = ok && (l.Tensor != p.buffer.Tensor || isThread(l.Index[0], n))
		}
	})
	return ok
}

// isThread reports whether an index equals the thread number.
func isThread(index expr.Expr, n *ir.For) bool {
	for t := range n.Extent {
		if v, ok := valueAt(index, n.Var, t); !ok || v != t {
			return false
		}
	}
	return true
}

// valueAt evaluates an expression in a single variable.
func valueAt(e expr.Expr, v *expr.Var, at int64) (int64, bool) {
	x := expr.Linearize(expr.Substitute(e, map[*expr.Var]expr.Expr{v: expr.I(at)}))
	return x.Const, len(x.Terms) == 0
}

// combines matches the loop that combines the values of neighbouring threads, the same number for each result.
func (p *partials) combines() bool {
	n := p.combine
	if len(n.Body) < 2 || !p.singles(n.Body[2:]) {
		return false
	}
	first, okFirst := n.Body[0].(*ir.Store)
	loop, okLoop := n.Body[1].(*ir.For)
	if !okFirst || !okLoop || loop.Kind != ir.Lanewise || len(loop.Body) != 1 || len(expr.Loads(first.Value)) > 0 {
		return false
	}
	store, ok := loop.Body[0].(*ir.Store)
	if !ok || store.Buffer.Tensor != first.Buffer.Tensor || store.Buffer.Space == ir.Private || !expr.Same(store.Index, first.Index) {
		return false
	}
	op, term, ok := store.Step()
	load, isLoad := term.(*expr.Load)
	p.lanes, p.op, p.to = loop.Extent, op, store
	return ok && isLoad && load.Tensor == p.buffer.Tensor && p.lanes <= warpThreads && p.lanes&(p.lanes-1) == 0 &&
		p.lanes*n.Extent == p.compute.Extent && p.inOrder(load.Index[0], loop.Var)
}

// singles reports whether the thread of a single result may execute the block after the loop, which must not depend
// on the thread number.
func (p *partials) singles(rest ir.Block) bool {
	p.rest = rest
	ok := len(rest) == 0 || p.combine.Extent == 1 && !ir.Uses(rest, p.buffer.Tensor)
	ir.VisitExprs(rest, func(e expr.Expr) { ok = ok && !expr.Uses(e, p.combine.Var) })
	return ok
}

// inOrder reports whether thread u combines the elements from u*lanes on.
func (p *partials) inOrder(index expr.Expr, lane *expr.Var) bool {
	for u := range p.combine.Extent {
		at := expr.Substitute(index, map[*expr.Var]expr.Expr{p.combine.Var: expr.I(u)})
		for l := range p.lanes {
			if v, ok := valueAt(at, lane, l); !ok || v != u*p.lanes+l {
				return false
			}
		}
	}
	return true
}

// run returns the loop in which threads compute partial results and combine them.
func (p *partials) run() *ir.For {
	own := &ir.Buffer{Tensor: ir.Flat(p.buffer.Tensor.Name, p.buffer.Tensor.DType, 1), Space: ir.Private}
	mine := own.Tensor.At(expr.I(0))
	body := append(ir.Block{&ir.Alloc{Buffer: own}}, p.kept(p.compute.Body, own)...)
	for mask := p.lanes / 2; mask > 0; mask /= 2 {
		body = append(body, &ir.Store{Buffer: own, Index: expr.I(0), Value: expr.Bin(p.op, mine, nvidia.Shuffle(mine, mask))})
	}
	t := p.compute.Var
	result := map[*expr.Var]expr.Expr{p.combine.Var: expr.Bin(expr.FloorDiv, t, expr.I(p.lanes))}
	index := expr.Simplify(expr.Substitute(p.to.Index, result))
	first := expr.Simplify(expr.Bin(expr.Eq, expr.Bin(expr.FloorMod, t, expr.I(p.lanes)), expr.I(0)))
	then := append(ir.Block{&ir.Store{Buffer: p.to.Buffer, Index: index, Value: mine}}, p.rest...)
	body = append(body, &ir.If{Cond: first, Then: then})
	return p.compute.With(body)
}

// kept rewrites a block to keep the thread's element in a register.
func (p *partials) kept(b ir.Block, own *ir.Buffer) ir.Block {
	out := make(ir.Block, len(b))
	for k, st := range b {
		switch n := st.(type) {
		case *ir.For:
			st = n.With(p.kept(n.Body, own))
		case *ir.Let:
			st = &ir.Let{Var: n.Var, Value: p.read(n.Value, own)}
		case *ir.Store:
			st = &ir.Store{Buffer: own, Index: expr.I(0), Value: p.read(n.Value, own)}
		}
		out[k] = st
	}
	return out
}

func (p *partials) read(e expr.Expr, own *ir.Buffer) expr.Expr {
	return expr.RewriteLoads(e, p.buffer.Tensor, func(*expr.Load) expr.Expr { return own.Tensor.At(expr.I(0)) })
}
