package pass

import (
	"maps"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// filled is a scratch buffer that is fetched ahead.
type filled struct {
	// depth is the number of loops around its allocation, bound has the variables that are known there.
	depth int
	bound map[*expr.Var]bool
	// from is the part of a prefetched constant that it is computed from; nil as long as none is known.
	from *source
}

// source is a part of a constant.
type source struct {
	constant *expr.Tensor
	// base is the index of its first element, bytes its size.
	base  expr.Linear
	bytes int64
}

// allocated takes note of a scratch buffer in memory.
func (a *prefetchAhead) allocated(b *ir.Buffer) {
	if b.Space != ir.Register && b.AheadBytes > 0 {
		a.bytes[b.Tensor] = b.AheadBytes
		a.filled[b.Tensor] = &filled{depth: len(a.loops), bound: maps.Clone(a.bound)}
	}
}

// filling takes note of the part of a prefetched constant that vectors of a buffer are computed from. When it is used
// and filled again, that is from the part behind.
func (a *prefetchAhead) filling(n *ir.Store, lane *expr.Var) {
	f := a.filled[n.Buffer.Tensor]
	if f == nil {
		return
	}
	for _, l := range expr.Loads(n.Value) {
		a.filledFrom(f, l, lane)
	}
}

// filledFrom takes note of a load that a buffer is filled from, of a register or of memory.
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

// sourceOf is what the loops inside a buffer's scope read of a constant; ok is false where that does not begin at an
// index that is known all over the scope.
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
	ok = true
	for _, term := range from.base.Terms {
		expr.Walk(term.Atom, func(e expr.Expr) {
			if v, isVar := e.(*expr.Var); isVar {
				ok = ok && f.bound[v]
			}
		})
	}
	return from, ok
}
