package expr

import "fmt"

// Children calls visit for each direct operand of e, in order.
func Children(e Expr, visit func(Expr)) {
	switch n := e.(type) {
	case *Var, *Int, *Float:
	case *Load:
		for _, x := range n.Index {
			visit(x)
		}
	case *Binary:
		visit(n.A)
		visit(n.B)
	case *Unary:
		visit(n.A)
	case *Select:
		visit(n.Cond)
		visit(n.A)
		visit(n.B)
	case *Cast:
		visit(n.A)
	case Node:
		for _, x := range n.Operands() {
			visit(x)
		}
	default:
		panic(fmt.Sprintf("expr: unknown node %T", e))
	}
}

// Size returns the number of nodes of e, counting each occurrence.
func Size(e Expr) int {
	switch n := e.(type) {
	case *Binary:
		return 1 + Size(n.A) + Size(n.B)
	case *Unary:
		return 1 + Size(n.A)
	case *Cast:
		return 1 + Size(n.A)
	case *Select:
		return 1 + Size(n.Cond) + Size(n.A) + Size(n.B)
	case *Load:
		size := 1
		for _, x := range n.Index {
			size += Size(x)
		}
		return size
	case Node:
		size := 1
		for _, x := range n.Operands() {
			size += Size(x)
		}
		return size
	}
	return 1
}

// Walk calls visit for e and everything below it, parents first.
func Walk(e Expr, visit func(Expr)) {
	visit(e)
	Children(e, func(c Expr) { Walk(c, visit) })
}

// Rewrite rebuilds e bottom up: each node is rebuilt from its rewritten operands (folding constants on the way),
// then passed to f, which returns its replacement, or the node itself.
func Rewrite(e Expr, f func(Expr) Expr) Expr {
	sub := func(x Expr) Expr { return Rewrite(x, f) }
	switch n := e.(type) {
	case *Load:
		index := make([]Expr, len(n.Index))
		for k, x := range n.Index {
			index[k] = sub(x)
		}
		return f(&Load{Tensor: n.Tensor, Index: index})
	case *Binary:
		return f(n.rebuilt(sub(n.A), sub(n.B)))
	case *Unary:
		return f(Un(n.Op, sub(n.A)))
	case *Select:
		return f(Sel(sub(n.Cond), sub(n.A), sub(n.B)))
	case *Cast:
		return f(To(n.Type, sub(n.A)))
	case Node:
		return f(n.Map(sub))
	default:
		return f(e)
	}
}

// RewriteLoads is Rewrite for the loads of a tensor.
func RewriteLoads(e Expr, t *Tensor, f func(*Load) Expr) Expr {
	return Rewrite(e, func(x Expr) Expr {
		if l, ok := x.(*Load); ok && l.Tensor == t {
			return f(l)
		}
		return x
	})
}

// Map returns e with f applied to each direct operand, which must keep its type. The node itself is kept without
// folding.
func Map(e Expr, f func(Expr) Expr) Expr {
	switch n := e.(type) {
	case *Load:
		index := make([]Expr, len(n.Index))
		for k, x := range n.Index {
			index[k] = f(x)
		}
		return &Load{Tensor: n.Tensor, Index: index}
	case *Binary:
		return &Binary{Op: n.Op, A: f(n.A), B: f(n.B), Fused: n.Fused, dtype: n.dtype}
	case *Unary:
		return &Unary{Op: n.Op, A: f(n.A), dtype: n.dtype}
	case *Select:
		return &Select{Cond: f(n.Cond), A: f(n.A), B: f(n.B), dtype: n.dtype}
	case *Cast:
		return &Cast{Type: n.Type, A: f(n.A)}
	case Node:
		return n.Map(f)
	}
	return e
}

// Substitute replaces variables.
func Substitute(e Expr, values map[*Var]Expr) Expr {
	return Rewrite(e, func(x Expr) Expr {
		if v, ok := x.(*Var); ok {
			if r, ok := values[v]; ok {
				return r
			}
		}
		return x
	})
}

// Loads returns every load in e, in order of appearance, including repetitions.
func Loads(e Expr) []*Load { return appendLoads(nil, e) }

func appendLoads(list []*Load, e Expr) []*Load {
	switch n := e.(type) {
	case *Load:
		list = append(list, n)
		for _, x := range n.Index {
			list = appendLoads(list, x)
		}
	case *Binary:
		list = appendLoads(appendLoads(list, n.A), n.B)
	case *Unary:
		list = appendLoads(list, n.A)
	case *Cast:
		list = appendLoads(list, n.A)
	case *Select:
		list = appendLoads(appendLoads(appendLoads(list, n.Cond), n.A), n.B)
	case Node:
		for _, x := range n.Operands() {
			list = appendLoads(list, x)
		}
	}
	return list
}
