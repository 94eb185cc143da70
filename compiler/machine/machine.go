package machine

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Fence is a compiler barrier: later statements must not move before it.
var Fence = &ir.Instruction{Name: "fence", Orders: true, Text: `__asm__ volatile("" ::: "memory");`}

var (
	line  = ir.Param{Name: "line", Use: ir.Ordered, Form: ir.Address}
	bytes = ir.Param{Name: "bytes", Form: ir.Number}

	prefetch        = &ir.Instruction{Name: "prefetch", Orders: true, Params: []ir.Param{line}, Text: "__builtin_prefetch(%s, 0);"}
	prefetchToWrite = &ir.Instruction{Name: "prefetch.write", Orders: true, Params: []ir.Param{line}, Text: "__builtin_prefetch(%s, 1);"}
	prefetchAhead   = &ir.Instruction{Name: "prefetch.ahead", Orders: true, Params: []ir.Param{line, bytes}, Text: "__builtin_prefetch((const char *)%s + %s);"}
	// Data that is read several times bypasses the first-level cache.
	prefetchAgain = &ir.Instruction{Name: "prefetch.l2", Orders: true, Params: []ir.Param{line, bytes}, Text: "__builtin_prefetch((const char *)%s + %s, 0, 2);"}
)

// Prefetch returns a prefetch of the line of an element, to write it or to read it.
func Prefetch(t *expr.Tensor, at expr.Linear, write bool) *ir.Call {
	i := prefetch
	if write {
		i = prefetchToWrite
	}
	return ir.Exec(i, ir.In(t, at.Expr()))
}

// PrefetchAhead returns a prefetch of the line at a distance in bytes from an element, which may vary with the
// surrounding loops if the line is read several times.
func PrefetchAhead(t *expr.Tensor, at, bytes expr.Linear) *ir.Call {
	i := prefetchAhead
	if len(bytes.Terms) > 0 {
		i = prefetchAgain
	}
	return ir.Exec(i, ir.In(t, at.Expr()), ir.Of(bytes.Expr()))
}

// IsPrefetch reports whether a statement is a prefetch.
func IsPrefetch(st ir.Stmt) bool {
	c, ok := st.(*ir.Call)
	return ok && slices.Contains([]*ir.Instruction{prefetch, prefetchToWrite, prefetchAhead, prefetchAgain}, c.Instruction)
}
