package pass

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Threads turns a GPU kernel into a sequence of launches, which are loops over blocks. Within a launch, all stores
// lie in loops over threads, and the statements around these are uniform. Unbound code becomes a launch of one
// block, or the work of the first thread: slow but correct. The error names a statement that fits no launch.
func Threads(f *ir.Func) (*ir.Func, error) {
	var body, run ir.Block
	flush := func() error {
		if len(run) == 0 {
			return nil
		}
		launch, err := launched(&ir.For{Var: one("b"), Extent: 1, Kind: ir.Blocks, Body: run})
		body, run = append(body, launch), nil
		return err
	}
	for _, st := range f.Body {
		if a, ok := st.(*ir.Alloc); ok && a.Buffer.Space == ir.Scratch {
			body = append(body, st) // outlives a launch
			continue
		}
		n, ok := st.(*ir.For)
		if !ok || n.Kind != ir.Blocks {
			if contains(ir.Block{st}, ir.Blocks) {
				return nil, fmt.Errorf("threads: a loop on blocks is inside another loop, which would be a launch for each iteration")
			}
			run = append(run, st)
			continue
		}
		if err := flush(); err != nil {
			return nil, err
		}
		launch, err := launched(n)
		if err != nil {
			return nil, err
		}
		body = append(body, launch)
	}
	if err := flush(); err != nil {
		return nil, err
	}
	return f.With(body), nil
}

// one returns the variable of a loop that runs once.
func one(name string) *expr.Var { return &expr.Var{Name: name, Extent: 1} }

func launched(n *ir.For) (*ir.For, error) {
	body, err := together(n.Body)
	return n.With(body), err
}

// together rewrites statements that all threads of a block execute uniformly.
func together(b ir.Block) (ir.Block, error) {
	var out, run ir.Block
	flush := func() {
		if len(run) > 0 {
			out = append(out, &ir.For{Var: one("t"), Extent: 1, Kind: ir.Threads, Body: run})
		}
		run = nil
	}
	for _, st := range b {
		_, isAlloc := st.(*ir.Alloc)
		_, isLet := st.(*ir.Let)
		shares := ir.Any(ir.Block{st}, func(a *ir.Alloc) bool { return a.Buffer.Space == ir.Shared })
		if !isAlloc && !isLet && !shares && !contains(ir.Block{st}, ir.Threads) {
			run = append(run, st)
			continue
		}
		flush()
		st, err := divided(st)
		if err != nil {
			return nil, err
		}
		out = append(out, st)
	}
	flush()
	return out, nil
}

// divided rewrites a statement that contains loops over threads or shared buffers, or that stores nothing.
func divided(st ir.Stmt) (ir.Stmt, error) {
	switch n := st.(type) {
	case *ir.For:
		if n.Kind == ir.Threads {
			if contains(n.Body, ir.Threads) {
				return nil, fmt.Errorf("threads: the loop over %s is inside another on threads; fuse them", n.Var.Name)
			}
			return n, nil
		}
		body, err := together(n.Body)
		loop := n.With(body)
		if n.Kind != ir.Persistent {
			loop.Kind = ir.Serial
		}
		return loop, err
	case *ir.If:
		then, err := together(n.Then)
		if err != nil {
			return nil, err
		}
		other, err := together(n.Else)
		return &ir.If{Cond: n.Cond, Then: then, Else: other}, err
	}
	return st, nil
}

// contains reports whether a block has a loop of the given kind.
func contains(b ir.Block, kind ir.Kind) bool {
	return ir.Any(b, func(n *ir.For) bool { return n.Kind == kind })
}
