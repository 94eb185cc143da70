package ir

import "github.com/tilth-dev/tilth/compiler/expr"

// Visit calls f for every statement of a block, outer ones first.
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

// VisitExprs calls f for every top-level expression of the statements of a block.
func VisitExprs(b Block, f func(expr.Expr)) {
	Visit(b, func(st Stmt) {
		switch n := st.(type) {
		case *For:
			if n.Range != nil {
				f(n.Range.First)
				f(n.Range.End)
			}
		case *If:
			f(n.Cond)
		case *Let:
			f(n.Value)
		case *Store:
			f(n.Index)
			f(n.Value)
		case *Define:
			f(n.Value)
		case *Copy:
			n.exprs(f)
		case *Call:
			n.exprs(f)
		}
	})
}

func (n *Copy) exprs(f func(expr.Expr)) {
	f(n.Index)
	f(n.From)
	if n.Valid != nil {
		f(n.Valid)
	}
}

// Rewrite returns a block with each expression of its statements replaced.
func Rewrite(b Block, f func(expr.Expr) expr.Expr) Block {
	out := make(Block, len(b))
	for k, st := range b {
		switch x := st.(type) {
		case *For:
			loop := x.With(Rewrite(x.Body, f))
			loop.Range = x.Range.Rewritten(f)
			st = loop
		case *If:
			st = &If{Cond: f(x.Cond), Then: Rewrite(x.Then, f), Else: Rewrite(x.Else, f)}
		case *Let:
			st = &Let{x.Var, f(x.Value)}
		case *Store:
			st = &Store{Buffer: x.Buffer, Index: f(x.Index), Value: f(x.Value), Streamed: x.Streamed}
		case *Copy:
			c := x.rewritten(f)
			st = &c
		case *Call:
			st = x.rewritten(f)
		}
		out[k] = st
	}
	return out
}

// rewritten returns a copy with its expressions replaced; its source must remain a load.
func (n *Copy) rewritten(f func(expr.Expr) expr.Expr) Copy {
	c := *n
	c.Index, c.From = f(n.Index), f(n.From).(*expr.Load)
	if n.Valid != nil {
		c.Valid = f(n.Valid)
	}
	return c
}

// Uses reports whether a block stores to a tensor or reads it.
func Uses(b Block, t *expr.Tensor) bool {
	used := false
	Visit(b, func(st Stmt) {
		if b := Written(st); b != nil && b.Tensor == t {
			used = true
		}
	})
	VisitExprs(b, func(e expr.Expr) {
		for _, l := range expr.Loads(e) {
			used = used || l.Tensor == t
		}
	})
	return used
}

// Written returns the buffer that a statement writes to, or nil.
func Written(st Stmt) *Buffer {
	if to := written(st); to != nil {
		return *to
	}
	return nil
}

// written returns where a statement holds the buffer that it writes to, or nil.
func written(st Stmt) **Buffer {
	switch n := st.(type) {
	case *Store:
		return &n.Buffer
	case *Copy:
		return &n.To
	case *Call:
		if a := n.written(); a != nil {
			return &a.Buffer
		}
	}
	return nil
}

// Any reports whether a block has a statement of type S, at any depth, for which holds returns true.
func Any[S Stmt](b Block, holds func(S) bool) bool {
	found := false
	Visit(b, func(st Stmt) {
		if n, ok := st.(S); ok {
			found = found || holds(n)
		}
	})
	return found
}

// Has reports whether a block has a statement of type S at any depth.
func Has[S Stmt](b Block) bool { return Any(b, func(S) bool { return true }) }

// HasParallel reports whether a block has a parallel loop.
func HasParallel(b Block) bool { return Any(b, func(n *For) bool { return n.Kind == Parallel }) }
