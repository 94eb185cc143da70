// The guard pass is the pass that asks conditions around loops, not in each of their iterations. Begin with Run.

package pass

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Guard puts a condition that is the same in all iterations of a loop around the loop, where the loop does nothing
// else. What a thread loads and stores in its iterations has no branches between it then: all loads can be begun
// before the first one is waited for.
func Guard(f *ir.Func) *ir.Func { return ir.MapLoops(f, guardLoop) }

// guardLoop is a loop with the condition that is all of its body around it. Loops on blocks and threads stay where
// they are: they are the launch.
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

// same is a condition as it is in all iterations of a loop; ok is false where it is not known to be the same in all.
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
		// Neighbours from a multiple of their number on are all below another multiple of it, or none is.
		end, constant := b.B.(*expr.Int)
		first, ok := expr.Neighbours(b.A, n.Var, n.Extent)
		if !constant || !ok || end.Value%n.Extent != 0 {
			return nil, false
		}
		return expr.Bin(expr.Lt, first, end), true
	}
	return nil, false
}
