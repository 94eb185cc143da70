package cost

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// reader collects the operations and accesses of a body.
type reader struct {
	*Analysis
	at *Statement
}

// body reads a statement's computation, including the value combined with the result so far.
func (a *Analysis) body(x *Statement) {
	r := reader{a, x}
	g := x.Nest.Stage
	switch b, isProduct := g.Body.(*expr.Binary); {
	case g.Combiner == expr.Sum && isProduct && b.Op == expr.Mul:
		x.Operations.MultiplyAdds++
		r.value(b.A, 1)
		r.value(b.B, 1)
	default:
		r.value(g.Body, 1)
		if g.Combiner != expr.None {
			r.count(g.Tensor.DType.IsFloat(), 1)
		}
	}
	r.result()
}

// value counts an expression that is computed weight times per iteration.
func (r reader) value(e expr.Expr, weight float64) {
	switch n := e.(type) {
	case *expr.Load:
		r.load(n, weight)
	case *expr.Binary:
		r.binary(n, weight)
	case *expr.Unary:
		switch n.Op.Work() {
		case expr.Division:
			r.at.Operations.Divides += weight
		case expr.Transcendental:
			r.at.Operations.Transcendentals += weight
		default:
			r.count(n.A.DType().IsFloat(), weight)
		}
		r.value(n.A, weight)
	case *expr.Cast:
		r.at.Operations.Casts += weight
		r.value(n.A, weight)
	case *expr.Select:
		r.choice(n, weight)
	}
}

// binary counts an expression. A product that is added to something counts as one operation.
func (r reader) binary(n *expr.Binary, weight float64) {
	switch {
	case n.Op.Work() == expr.Transcendental:
		r.at.Operations.Transcendentals += weight
	case n.Op.Work() == expr.Division:
		r.at.Operations.Divides += weight
	case (n.Op == expr.Add || n.Op == expr.Sub) && n.DType().IsFloat():
		for _, side := range [2]expr.Expr{n.A, n.B} {
			if m, ok := side.(*expr.Binary); ok && m.Op == expr.Mul {
				r.at.Operations.MultiplyAdds += weight
				r.value(m.A, weight)
				r.value(m.B, weight)
				r.value(other(n, side), weight)
				return
			}
		}
		r.at.Operations.Adds += weight
	default:
		r.count(n.A.DType().IsFloat(), weight)
	}
	r.value(n.A, weight)
	r.value(n.B, weight)
}

func other(n *expr.Binary, side expr.Expr) expr.Expr {
	if n.A == side {
		return n.B
	}
	return n.A
}

func (r reader) count(float bool, weight float64) {
	if float {
		r.at.Operations.Adds += weight
	} else {
		r.at.Operations.Integers += weight
	}
}

// choice counts a selection. A selection by index is resolved outside the loops. Where an axis is compared with
// successive values, as in Winograd's transforms, each side is computed for its share of the values. Elsewhere it is
// padding.
func (r reader) choice(n *expr.Select, weight float64) {
	if share, ok := shareOf(n.Cond); ok {
		r.value(n.A, weight*share)
		r.value(n.B, weight*(1-share))
		return
	}
	if readsMemory(n.Cond) {
		r.at.Operations.Selects += weight
		r.value(n.Cond, weight)
	} else {
		r.at.Operations.Guards += weight
	}
	r.value(n.A, weight)
	r.value(n.B, weight)
}

// shareOf returns the fraction of an axis' values that equal a constant, among those not compared before.
func shareOf(cond expr.Expr) (share float64, ok bool) {
	b, isBinary := cond.(*expr.Binary)
	if !isBinary || b.Op != expr.Eq {
		return 0, false
	}
	c, isInt := b.B.(*expr.Int)
	values := int64(0)
	switch a := b.A.(type) {
	case *expr.Var:
		values = a.Extent
	case *expr.Binary:
		if m, ok := a.B.(*expr.Int); ok && a.Op == expr.FloorMod && !readsMemory(a.A) {
			values = m.Value
		}
	}
	if !isInt || c.Value < 0 || c.Value >= values {
		return 0, false
	}
	return 1 / float64(values-c.Value), true
}

// readsMemory reports whether an expression reads more than counts, which stay in registers.
func readsMemory(e expr.Expr) bool {
	return slices.ContainsFunc(expr.Loads(e), func(l *expr.Load) bool { return l.Tensor.Max == 0 })
}
