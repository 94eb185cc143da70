// The threads pass is the pass that gives everything in a kernel for a GPU its launch and its threads. Begin with Run.

package pass

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Threads makes a kernel a sequence of launches: loops on blocks. In a launch, all that stores lies in loops on
// threads, and what lies around those is the same for all threads. What a schedule left unbound becomes a launch of
// one block, or the work of the first thread: slow, and right. The error says what no launch can be made of.
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
			body = append(body, st) // what outlives a launch
			continue
		}
		n, ok := st.(*ir.For)
		if !ok || n.Kind != ir.Blocks {
			if contains(ir.Block{st}, ir.Blocks) {
				return nil, fmt.Errorf("threads: a loop on blocks lies inside of another loop, which would be a launch for each iteration")
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

// one is the variable of a loop that runs once.
func one(name string) *expr.Var { return &expr.Var{Name: name, Extent: 1} }

func launched(n *ir.For) (*ir.For, error) {
	body, err := together(n.Body)
	return n.With(body), err
}

// together rewrites what all threads of a block do in the same way.
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
		if !isAlloc && !isLet && !contains(ir.Block{st}, ir.Threads) && !threadsAllocates(ir.Block{st}) {
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

// divided rewrites a statement in which there are loops on threads or shared buffers, or one that stores nothing.
func divided(st ir.Stmt) (ir.Stmt, error) {
	switch n := st.(type) {
	case *ir.For:
		if n.Kind == ir.Threads {
			if contains(n.Body, ir.Threads) {
				return nil, fmt.Errorf("threads: the loop over %s lies inside of another on threads; fuse them", n.Var.Name)
			}
			return n, nil
		}
		body, err := together(n.Body)
		loop := n.With(body)
		if n.Kind != ir.Walk {
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

// threadsAllocates reports whether a block allocates what all threads of a block use.
func threadsAllocates(b ir.Block) bool {
	found := false
	ir.Visit(b, func(st ir.Stmt) {
		a, ok := st.(*ir.Alloc)
		found = found || ok && a.Buffer.Space == ir.Shared
	})
	return found
}

// contains reports whether a block has a loop of a kind.
func contains(b ir.Block, kind ir.Kind) bool {
	found := false
	ir.Visit(b, func(st ir.Stmt) {
		n, ok := st.(*ir.For)
		found = found || ok && n.Kind == kind
	})
	return found
}
