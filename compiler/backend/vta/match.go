package vta

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// binding is how the formal operands of a vector instruction match an expression.
type binding struct{ rows, immediates []expr.Expr }

// match unifies the instruction's value with an expression. A copy matches only an element.
func (v *vector) match(e expr.Expr) (binding, bool) {
	if _, copies := v.value.(*expr.Load); copies && constantOf(e) == nil {
		if _, element := e.(*expr.Load); !element {
			return binding{}, false
		}
	}
	b := binding{make([]expr.Expr, len(v.rows)), make([]expr.Expr, len(v.immediates))}
	return b, b.unify(v, v.value, e)
}

func (b *binding) unify(v *vector, pattern, e expr.Expr) bool {
	if pattern.DType() != e.DType() {
		return false
	}
	switch p := pattern.(type) {
	case *expr.Load:
		if k := slices.Index(v.immediates, p.Tensor); k >= 0 {
			b.immediates[k] = constantOf(e)
			return b.immediates[k] != nil
		}
		k := slices.Index(v.rows, p.Tensor)
		b.rows[k] = e
		return constantOf(e) == nil
	case *expr.Binary:
		n, ok := e.(*expr.Binary)
		return ok && n.Op == p.Op && n.Fused == p.Fused && b.unify(v, p.A, n.A) && b.unify(v, p.B, n.B)
	case *expr.Unary:
		n, ok := e.(*expr.Unary)
		return ok && n.Op == p.Op && b.unify(v, p.A, n.A)
	case *expr.Cast:
		n, ok := e.(*expr.Cast)
		return ok && b.unify(v, p.A, n.A)
	}
	return false
}

// constantOf returns the value of a constant expression, or nil for others.
func constantOf(e expr.Expr) expr.Expr {
	switch n := e.(type) {
	case *expr.Int, *expr.Float:
		return n
	case *expr.Cast:
		if c, ok := constantOf(n.A).(*expr.Int); ok {
			switch {
			case n.Type == array.Int32 && c.Type.Bytes() < 4:
				return &expr.Int{Value: c.Value, Type: n.Type}
			case n.Type == array.Float32 && c.Value > -1<<24 && c.Value < 1<<24:
				return expr.F(n.Type, float64(c.Value))
			}
		}
	}
	return nil
}

// means reports whether the last loops of a nest compute the meaning of an instruction on operands.
func (n nest) means(i *ir.Instruction, operands []access) bool {
	m, ok := nestOf(i.Meaning.Body[0])
	around := len(n.loops) - len(m.loops)
	if !ok || around < 0 {
		return false
	}
	for k, f := range i.Meaning.Operands {
		if f.Buffer.Tensor.DType != operands[k].tensor.DType {
			return false
		}
	}
	loops := map[*expr.Var]expr.Expr{}
	for k, l := range m.loops {
		if n.loops[around+k].Extent != l.Extent {
			return false
		}
		loops[l.Var] = n.loops[around+k].Var
	}
	actual := func(e expr.Expr) expr.Expr {
		return expr.Rewrite(expr.Substitute(e, loops), func(x expr.Expr) expr.Expr {
			l, ok := x.(*expr.Load)
			if !ok {
				return x
			}
			k := slices.IndexFunc(i.Meaning.Operands, func(f ir.Formal) bool { return f.Buffer.Tensor == l.Tensor })
			at := expr.AddE(operands[k].first, l.Index[0])
			for o, outer := range n.loops[:around] {
				at = expr.AddE(at, expr.MulE(outer.Var, expr.I(operands[k].steps[o])))
			}
			return &expr.Load{Tensor: operands[k].tensor, Index: []expr.Expr{at}}
		})
	}
	stored := actual(m.store.Buffer.Tensor.At(m.store.Index))
	return equal(stored, n.store.Buffer.Tensor.At(n.store.Index)) && equal(actual(m.store.Value), n.store.Value)
}

// equal reports whether two expressions are the same up to the form of indices.
func equal(a, b expr.Expr) bool {
	switch x := a.(type) {
	case *expr.Load:
		y, ok := b.(*expr.Load)
		if !ok || x.Tensor != y.Tensor {
			return false
		}
		d := expr.Linearize(x.Index[0]).Plus(expr.Linearize(y.Index[0]), -1)
		return d.Const == 0 && len(d.Terms) == 0
	case *expr.Binary:
		y, ok := b.(*expr.Binary)
		return ok && x.Op == y.Op && x.Fused == y.Fused && equal(x.A, y.A) && equal(x.B, y.B)
	case *expr.Cast:
		y, ok := b.(*expr.Cast)
		return ok && x.Type == y.Type && equal(x.A, y.A)
	}
	return expr.Same(a, b)
}
