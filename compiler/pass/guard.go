package pass

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Guard hoists a condition that is invariant over a loop out of it, if the loop body consists of nothing else. The
// iterations of a thread then contain no branches, and all loads can be issued before the first one is waited for.
func Guard(f *ir.Func) *ir.Func { return ir.MapLoops(f, guardLoop) }

// guardLoop hoists the condition that makes up the whole body of n. Loops over blocks and threads stay outermost,
// since they form the launch.
func guardLoop(n *ir.For) ir.Stmt {
	if n.Kind != ir.Serial && n.Kind != ir.Unrolled && n.Kind != ir.Vector || n.Range != nil || len(n.Body) != 1 {
		return n
	}
	guard, ok := n.Body[0].(*ir.If)
	if !ok || len(guard.Else) > 0 || len(expr.Loads(guard.Cond)) > 0 {
		return n
	}
	cond, ok := same(guard.Cond, n)
	if !ok {
		return n
	}
	return &ir.If{Cond: cond, Then: ir.Block{guardLoop(n.With(guard.Then))}}
}

// same returns the condition in loop-invariant form; ok is false if it may vary.
func same(cond expr.Expr, n *ir.For) (_ expr.Expr, ok bool) {
	if !expr.Uses(cond, n.Var) {
		return cond, true
	}
	b, isBinary := cond.(*expr.Binary)
	if !isBinary {
		return nil, false
	}
	switch b.Op {
	case expr.And:
		x, okX := same(b.A, n)
		y, okY := same(b.B, n)
		if !okX || !okY {
			return nil, false
		}
		return expr.Bin(expr.And, x, y), true
	case expr.Lt:
		// A group aligned to its size lies either wholly below an aligned bound or wholly above it.
		end, constant := b.B.(*expr.Int)
		first, ok := expr.Neighbours(b.A, n.Var, n.Extent)
		if !constant || !ok || end.Value%n.Extent != 0 {
			return nil, false
		}
		return expr.Bin(expr.Lt, first, end), true
	}
	return nil, false
}
