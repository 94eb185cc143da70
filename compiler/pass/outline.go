package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Outline records what the body of each parallel loop captures, since the body becomes a function of its own: the
// variables that it uses and does not define, in the order of their use, and the workspace buffers from outside, in
// the order of their allocation.
func Outline(f *ir.Func) *ir.Func { return f.With(outlineBlock(f.Body, nil)) }

// outlineBlock rewrites a block; around lists the workspace buffers allocated outside it.
func outlineBlock(b ir.Block, around []*ir.Buffer) ir.Block {
	out := make(ir.Block, len(b))
	for k, st := range b {
		switch n := st.(type) {
		case *ir.Alloc:
			around = slices.DeleteFunc(slices.Clone(around), func(x *ir.Buffer) bool { return x.Tensor == n.Buffer.Tensor })
			if n.Buffer.Space == ir.Workspace {
				around = append(around, n.Buffer)
			}
		case *ir.If:
			st = &ir.If{Cond: n.Cond, Then: outlineBlock(n.Then, around), Else: outlineBlock(n.Else, around)}
		case *ir.For:
			loop := n.With(outlineBlock(n.Body, around))
			if n.Kind == ir.Parallel {
				loop.Captured, loop.Shared = captured(n), shared(n, around)
			}
			st = loop
		}
		out[k] = st
	}
	return out
}

func captured(n *ir.For) []*expr.Var {
	inner := variables(n)
	var list []*expr.Var
	seen := map[*expr.Var]bool{}
	ir.VisitExprs(n.Body, func(e expr.Expr) {
		expr.Walk(e, func(x expr.Expr) {
			if v, ok := x.(*expr.Var); ok && !inner[v] && !seen[v] {
				seen[v] = true
				list = append(list, v)
			}
		})
	})
	return list
}

func shared(n *ir.For, around []*ir.Buffer) []*ir.Buffer {
	return slices.DeleteFunc(slices.Clone(around), func(b *ir.Buffer) bool { return !ir.Uses(n.Body, b.Tensor) })
}
