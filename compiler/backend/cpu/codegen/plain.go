package codegen

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// plain returns the meaning of an instruction as plain code on its operands, which have the names of the parameters. A
// meaning with vector loops is a sequence of vector operations, any other one consists of loops.
func (u *Unit) plain(i *ir.Instruction) string {
	p, body := (&kernelPrinter{unit: u}).printer(), i.Meaning.Body
	vectors := ir.Any(body, func(n *ir.For) bool { return n.Kind == ir.Vector })
	for n, f := range i.Meaning.Operands {
		t, name := f.Buffer.Tensor, i.Params[n].Name
		if vectors {
			p.registers[t] = &register{Buffer: ir.NewRegister(name, t.DType, f.Buffer.Elements()), name: name, defined: true}
		}
		p.memory[t] = name
	}
	if vectors {
		body = unrolled(body)
	}
	defer p.guard()() // operands have no addresses
	p.block(body)
	return p.out.String()
}

// unrolled returns a sequence of vector loops, whose lanes are picked from operands in registers.
func unrolled(b ir.Block) (out ir.Block) {
	for _, st := range b {
		n, ok := st.(*ir.For)
		switch {
		case ok && n.Kind == ir.Vector:
			st = n.With(ir.Rewrite(n.Body, func(e expr.Expr) expr.Expr { return picked(e, n.Var) }))
		case ok:
			for k := range n.Extent {
				at := expr.Simplifier{Values: map[*expr.Var]expr.Expr{n.Var: expr.I(k)}}
				out = append(out, unrolled(ir.Rewrite(n.Body, at.Simplify))...)
			}
			continue
		}
		out = append(out, st)
	}
	return out
}

// picked returns a value whose lanes are picked from whole registers.
func picked(e expr.Expr, lane *expr.Var) expr.Expr {
	return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
		l, ok := x.(*expr.Load)
		if !ok || expr.Same(l.Index[0], lane) {
			return x
		}
		first, picks := ir.Offsets(l.Index[0], lane)
		for k := range picks {
			picks[k] += first.Const
		}
		all := ir.Sources{Lane: lane, Width: l.Tensor.Shape[0], From: []*expr.Load{l.Tensor.At(expr.I(0)).(*expr.Load)}}
		return &ir.Picked{Sources: all, Picks: picks}
	})
}
