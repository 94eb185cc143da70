package ir

import "github.com/tilth-dev/tilth/compiler/expr"

// Visit calls f on every statement of a block, outer ones first.
func Visit(b Block, f func(Stmt)) {
	for _, st := range b {
		f(st)
		switch n := st.(type) {
		case *For:
			Visit(n.Body, f)
		case *If:
			Visit(n.Then, f)
			Visit(n.Else, f)
		}
	}
}

// VisitExprs calls f on every expression that the statements of a block have, without those inside of it.
func VisitExprs(b Block, f func(expr.Expr)) {
	Visit(b, func(st Stmt) {
		switch n := st.(type) {
		case *If:
			f(n.Cond)
		case *Let:
			f(n.Value)
		case *Store:
			f(n.Index)
			f(n.Value)
		}
	})
}

// Rewrite is a block with each expression of its statements replaced.
func Rewrite(b Block, f func(expr.Expr) expr.Expr) Block {
	out := make(Block, len(b))
	for k, st := range b {
		switch x := st.(type) {
		case *For:
			st = &For{Var: x.Var, Extent: x.Extent, Kind: x.Kind, Body: Rewrite(x.Body, f)}
		case *If:
			st = &If{Cond: f(x.Cond), Then: Rewrite(x.Then, f), Else: Rewrite(x.Else, f)}
		case *Let:
			st = &Let{x.Var, f(x.Value)}
		case *Store:
			st = &Store{Buffer: x.Buffer, Index: f(x.Index), Value: f(x.Value)}
		}
		out[k] = st
	}
	return out
}
