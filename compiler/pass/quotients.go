package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Quotients names quotients and remainders by extents of an execution, in the outermost loop whose iterations
// determine them. Partition can then decide conditions on them in the loops inside.
func Quotients(f *ir.Func) *ir.Func {
	if !f.Workload.IsOpen() {
		return f
	}
	return f.With(ir.MapEach(f.Body, namedQuotients))
}

func namedQuotients(n *ir.For) ir.Stmt {
	switch n.Kind {
	case ir.Vector, ir.Dot, ir.Matrices, ir.Lanewise: // the iterations are lanes or terms, and have no names of their own
		return n
	}
	inner := variables(n)
	delete(inner, n.Var)
	var lets ir.Block
	body := ir.Rewrite(n.Body, func(e expr.Expr) expr.Expr {
		return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
			q, ok := x.(*expr.Binary)
			if !ok || q.Op != expr.FloorDiv && q.Op != expr.FloorMod || usesAny(q, inner) || len(expr.Loads(q)) > 0 {
				return x
			}
			lo, hi, bounded := expr.Linearize(q).Bounds()
			if _, isInt := q.B.(*expr.Int); isInt || !bounded || lo < 0 {
				return x
			}
			k := slices.IndexFunc(lets, func(st ir.Stmt) bool { return expr.Same(st.(*ir.Let).Value, q) })
			if k < 0 {
				k, lets = len(lets), append(lets, &ir.Let{Var: &expr.Var{Name: "q", Extent: hi + 1}, Value: q})
			}
			return lets[k].(*ir.Let).Var
		})
	})
	return n.With(append(lets, ir.MapEach(body, namedQuotients)...))
}
