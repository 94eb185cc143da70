package pass

import (
	"fmt"
	"strconv"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// keys writes expressions as strings such that equal expressions have equal strings. Variables and tensors are
// compared by identity.
type keys struct {
	vars    map[*expr.Var]int
	tensors map[*expr.Tensor]int
	text    []byte
}

// of returns the key of a value with the lanes of the given variable, or of a scalar if lane is nil.
func (k *keys) of(e expr.Expr, lane *expr.Var) string {
	k.text = k.text[:0]
	if lane != nil {
		k.text = strconv.AppendInt(k.text, lane.Extent, 10)
	}
	k.expr(e, lane)
	return string(k.text)
}

func (k *keys) expr(e expr.Expr, lane *expr.Var) {
	switch n := e.(type) {
	case *expr.Var:
		if n == lane {
			k.text = append(k.text, 'l')
			return
		}
		k.text = append(k.text, 'v')
		k.number(identity(k.vars, n))
	case *expr.Int:
		k.text = append(k.text, 'i')
		k.number(n.Value)
	case *expr.Float:
		k.text = fmt.Appendf(k.text, "f%v:%x", n.Type, n.Value)
	case *expr.Load:
		k.text = append(k.text, '[')
		k.number(identity(k.tensors, n.Tensor))
		k.linear(expr.Linearize(n.Index[0]), lane)
	case *ir.Spread:
		k.text = append(k.text, 's')
		k.number(n.Elements)
		k.expr(n.Tensor.At(n.First), lane)
	case *ir.Picked:
		k.text = fmt.Appendf(k.text, "p%d %v", n.Width, n.Picks)
		for _, l := range n.From {
			k.expr(l, lane)
		}
	case *ir.Folded:
		k.text = fmt.Appendf(k.text, "+%d %d", n.Width, n.Factor)
		for _, l := range n.From {
			k.expr(l, lane)
		}
	case *ir.Lookup:
		k.text = fmt.Appendf(k.text, "t%x", n.Table.Data)
		k.expr(n.At, lane)
	case *expr.Binary:
		k.text = fmt.Appendf(k.text, "(%d ", n.Op)
		if n.Fused {
			k.text = append(k.text, '*')
		}
		k.expr(n.A, lane)
		k.expr(n.B, lane)
	case *expr.Unary:
		k.text = fmt.Appendf(k.text, "-%d ", n.Op)
		k.expr(n.A, lane)
	case *expr.Cast:
		k.text = fmt.Appendf(k.text, "c%d ", n.Type)
		k.expr(n.A, lane)
	default:
		k.text = fmt.Appendf(k.text, "%T", e)
		expr.Children(e, func(x expr.Expr) { k.expr(x, lane) })
	}
}

// linear writes an index with its terms in order. Indices built in the same way have the same key, wherever the
// lane stands.
func (k *keys) linear(at expr.Linear, lane *expr.Var) {
	k.number(at.Const)
	for _, t := range at.Terms {
		if t.Atom == expr.Expr(lane) {
			k.text = append(k.text, 'l')
			k.number(t.Coef)
		}
	}
	for _, t := range at.Terms {
		if t.Atom == expr.Expr(lane) {
			continue
		}
		k.text = append(k.text, '+')
		k.number(t.Coef)
		k.expr(t.Atom, lane)
	}
	k.text = append(k.text, ']')
}

func (k *keys) number(n int64) {
	k.text = append(strconv.AppendInt(k.text, n, 10), ' ')
}

// identity numbers values in the order of their first occurrence.
func identity[T comparable](seen map[T]int, x T) int64 {
	n, ok := seen[x]
	if !ok {
		n = len(seen)
		seen[x] = n
	}
	return int64(n)
}
