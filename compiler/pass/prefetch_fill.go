package pass

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// filled is a prefetched scratch buffer.
type filled struct {
	// depth is the number of loops around its allocation, bound the variables known there.
	depth int
	bound map[*expr.Var]bool
	// from is the part of a prefetched constant that fills the buffer; nil while unknown.
	from *source
}

// source is a part of a constant.
type source struct {
	constant *expr.Tensor
	// base is the index of its first element, bytes its size.
	base  expr.Linear
	bytes int64
}

// filling records the part of a prefetched constant that fills a buffer. When the buffer is refilled, the next part
// follows.
func (a *prefetchAhead) filling(n *ir.Store, lane *expr.Var) {
	f := a.filled[n.Buffer.Tensor]
	if f == nil {
		return
	}
	for _, l := range expr.Loads(n.Value) {
		a.filledFrom(f, l, lane)
	}
}

// filledFrom records a load, from a register or memory, that fills a buffer.
func (a *prefetchAhead) filledFrom(f *filled, l *expr.Load, lane *expr.Var) {
	if d := a.defined[l.Tensor]; d != nil {
		for _, inner := range expr.Loads(d.Value) {
			a.filledFrom(f, inner, d.Lane)
		}
		return
	}
	if a.bytes[l.Tensor] == 0 || a.filled[l.Tensor] != nil || f.from != nil && f.from.constant != l.Tensor {
		return
	}
	if from, ok := a.sourceOf(l, lane, f); ok && (f.from == nil || from.base.Const < f.from.base.Const) {
		f.from = from
	}
}

// sourceOf returns the part of a constant that the loops inside a buffer's scope read; ok is false if its first
// index is not known throughout the scope.
func (a *prefetchAhead) sourceOf(l *expr.Load, lane *expr.Var, f *filled) (from *source, ok bool) {
	from = &source{constant: l.Tensor, base: expr.Linearize(l.Index[0])}
	var inside []*expr.Var
	if lane != nil {
		inside = append(inside, lane)
	}
	extents := map[*expr.Var]int64{}
	for _, n := range a.loops[f.depth:] {
		inside, extents[n.Var] = append(inside, n.Var), n.Extent
	}
	for _, v := range inside {
		c, linear := from.base.Coef(v)
		if !linear || c < 0 {
			return nil, false
		}
		extent := v.Extent
		if n, isLoop := extents[v]; isLoop {
			extent = n
		}
		from.base = from.base.Plus(expr.Linearize(v), -c)
		from.bytes = max(from.bytes, c*extent*l.Tensor.DType.Bytes())
	}
	return from, allBound(from.base, f.bound)
}
