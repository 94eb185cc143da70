package pass

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Padding drops padding from sums: products of zero and a constant, such as convolution weights times the zeros
// around an image, and loops that become empty. It assumes that constants are finite. A sum with an infinite weight
// would be NaN without this pass, since zero times infinity is NaN.
func Padding(f *ir.Func) *ir.Func {
	p := newPadding(f)
	return f.With(p.block(f.Body))
}

func newPadding(f *ir.Func) *padding {
	p := &padding{constants: map[*expr.Tensor]bool{}}
	for _, c := range f.Prepared {
		p.constants[c.Buffer.Tensor] = true
	}
	for k, t := range f.Workload.Args() {
		if b := f.Args[k]; b != nil && t.Role == expr.Constant {
			p.constants[b.Tensor] = true
		}
	}
	return p
}

type padding struct {
	// constants holds the buffers of constants, packed or not.
	constants map[*expr.Tensor]bool
}

func (p *padding) block(b ir.Block) ir.Block {
	var out ir.Block
	for _, st := range b {
		switch n := st.(type) {
		case *ir.For:
			body := p.block(n.Body)
			if len(body) == 0 && len(n.Body) > 0 {
				continue
			}
			st = n.With(body)
		case *ir.If:
			then, otherwise := p.block(n.Then), p.block(n.Else)
			if len(then) == 0 && len(otherwise) == 0 {
				continue
			}
			st = &ir.If{Cond: n.Cond, Then: then, Else: otherwise}
		case *ir.Store:
			if p.addsNothing(n) {
				continue
			}
		}
		out = append(out, st)
	}
	return out
}

// addsNothing reports whether a store leaves an element unchanged, or adds only padding to it.
func (p *padding) addsNothing(n *ir.Store) bool {
	value := n.Value
	if sum, ok := value.(*expr.Binary); ok && sum.Op == expr.Add && p.isPadding(sum.B) {
		value = sum.A
	}
	l, ok := value.(*expr.Load)
	return ok && l.Tensor == n.Buffer.Tensor && len(l.Index) == 1 && expr.Same(l.Index[0], n.Index)
}

// isPadding reports whether a term is the product of zero and an element of a constant.
func (p *padding) isPadding(e expr.Expr) bool {
	product, ok := e.(*expr.Binary)
	if !ok || product.Op != expr.Mul {
		return false
	}
	return schedule.IsZero(product.A) && p.isConstant(product.B) || schedule.IsZero(product.B) && p.isConstant(product.A)
}

// isConstant reports whether an expression is an element of a constant, possibly cast.
func (p *padding) isConstant(e expr.Expr) bool {
	switch n := e.(type) {
	case *expr.Cast:
		return p.isConstant(n.A)
	case *expr.Load:
		return p.constants[n.Tensor]
	}
	return false
}
