package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// shifted finds the start of the last tile in a loop whose last tile is moved back to stay within bounds; ok is
// false if no tile moves, or no condition depends on the start. Split there, both parts have tile starts that are
// linear in the loop variable, so that their conditions can be decided.
func shifted(n *ir.For, conditions []*expr.Binary) (at int64, ok bool) {
	if !divisible(n) {
		return 0, false
	}
	ir.Visit(n.Body, func(st ir.Stmt) {
		let, isLet := st.(*ir.Let)
		if !isLet || ok || !slices.ContainsFunc(conditions, func(c *expr.Binary) bool { return expr.Uses(c, let.Var) }) {
			return
		}
		smallest, isMin := let.Value.(*expr.Binary)
		if !isMin || smallest.Op != expr.Min {
			return
		}
		difference := expr.Linearize(expr.SubE(smallest.A, smallest.B))
		if len(difference.Terms) != 1 || difference.Terms[0].Atom != expr.Expr(n.Var) {
			return
		}
		at = crossing(difference.Terms[0].Coef, -difference.Const)
		ok = at > 0 && at < n.Extent
	})
	return at, ok
}

// settle substitutes names for linear values, such as the starts of unmoved tiles.
func settle(b ir.Block) ir.Block {
	var out ir.Block
	for k, st := range b {
		if n, ok := st.(*ir.Let); ok && isLinear(n.Value) {
			s := expr.Simplifier{Values: map[*expr.Var]expr.Expr{n.Var: n.Value}}
			return append(out, settle(ir.Rewrite(b[k+1:], s.Simplify))...)
		}
		out = append(out, ir.MapInside(st, settle))
	}
	return out
}

func isLinear(e expr.Expr) bool {
	for _, t := range expr.Linearize(e).Terms {
		if _, ok := t.Atom.(*expr.Var); !ok {
			return false
		}
	}
	return true
}
