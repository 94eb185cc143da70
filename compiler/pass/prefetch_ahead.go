package pass

import (
	"maps"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine"
)

// Prefetch prefetches beyond the vectors read from buffers that are marked for it. It fetches each line once in a
// loop body, or twice if the line holds two vectors; fetching once made the best Winograd convolutions 2 % slower.
// It also fetches the part of a constant that follows the one being read repeatedly; see next.
func Prefetch(f *ir.Func, lineBytes int64) *ir.Func {
	a := &prefetchAhead{lineBytes: lineBytes, bytes: map[*expr.Tensor]int64{}, defined: map[*expr.Tensor]*ir.Define{}, factors: map[*expr.Tensor]bool{}}
	for _, p := range f.Prepared {
		a.bytes[p.Buffer.Tensor] = p.Buffer.AheadBytes
	}
	ir.Visit(f.Body, func(st ir.Stmt) {
		c, ok := st.(*ir.Call)
		for k := 0; ok && k < len(c.Params); k++ {
			if p := c.Params[k]; p.Use == ir.Read && p.In == ir.Register {
				a.factors[c.Args[k].Tensor] = true
			}
		}
	})
	a.enter()
	return f.With(a.block(f.Body))
}

// prefetchAhead holds the state at the current statement.
type prefetchAhead struct {
	lineBytes int64
	// bytes maps buffers in memory to their prefetch distance.
	bytes map[*expr.Tensor]int64
	// defined holds the values in registers, factors the operands of instructions.
	defined map[*expr.Tensor]*ir.Define
	factors map[*expr.Tensor]bool
	// filled holds the prefetched scratch buffers of the current function.
	filled map[*expr.Tensor]*filled
	// loops lists the surrounding loops within the function, outermost first; bound holds its known variables.
	loops []*ir.For
	bound map[*expr.Var]bool
	// fetched lists the lines that the innermost loop prefetches beyond, parts the buffers whose next part it
	// prefetches.
	fetched []line
	parts   map[*expr.Tensor]bool
}

// enter starts a function.
func (a *prefetchAhead) enter() {
	a.filled, a.loops, a.fetched, a.parts = map[*expr.Tensor]*filled{}, nil, nil, map[*expr.Tensor]bool{}
	if a.bound == nil {
		a.bound = map[*expr.Var]bool{}
	}
}

func (a *prefetchAhead) block(b ir.Block) ir.Block {
	outer := a.bound
	a.bound = maps.Clone(outer)
	defer func() { a.bound = outer }()
	var out ir.Block
	for _, st := range b {
		switch n := st.(type) {
		case *ir.Alloc:
			if b := n.Buffer; b.Space != ir.Register && b.AheadBytes > 0 {
				a.bytes[b.Tensor] = b.AheadBytes
				a.filled[b.Tensor] = &filled{depth: len(a.loops), bound: maps.Clone(a.bound)}
			}
		case *ir.Let:
			a.bound[n.Var] = true
		case *ir.If:
			st = &ir.If{Cond: n.Cond, Then: a.block(n.Then), Else: a.block(n.Else)}
		case *ir.Define:
			a.defined[n.Buffer.Tensor] = n
			out = append(out, a.reading(n)...)
		case *ir.For:
			st = a.loop(n)
		}
		out = append(out, st)
	}
	return out
}

func (a *prefetchAhead) loop(n *ir.For) ir.Stmt {
	if n.Kind == ir.Vector {
		if s, ok := n.Body[0].(*ir.Store); ok && !s.Streamed {
			a.filling(s, n.Var)
		}
		return n
	}
	around := *a
	defer func() { *a = around }()
	if n.Kind == ir.Parallel {
		a.enter()
	} else {
		a.loops, a.fetched, a.parts = append(a.loops[:len(a.loops):len(a.loops)], n), nil, map[*expr.Tensor]bool{}
	}
	a.bound = maps.Clone(a.bound)
	a.bound[n.Var] = true
	return n.With(a.block(n.Body))
}

// reading returns the prefetches for a value that is about to be loaded.
func (a *prefetchAhead) reading(n *ir.Define) (out ir.Block) {
	l, ok := n.Value.(*expr.Load)
	if !ok || n.Lane == nil || a.bytes[l.Tensor] == 0 {
		return nil
	}
	at := line{tensor: l.Tensor, at: expr.Linearize(l.Index[0]).Plus(expr.Linearize(n.Lane), -1)}
	if !at.in(a.fetched) {
		a.fetched = append(a.fetched, at)
		out = append(out, machine.PrefetchAhead(at.tensor, at.at, expr.Linear{Const: a.bytes[l.Tensor]}))
	}
	if a.factors[n.Buffer.Tensor] { // small integers: the benefit of fetching their next part is unmeasured
		return out
	}
	return append(out, a.next(at)...)
}
