package codegen

import (
	"maps"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// filled is a scratch buffer that is fetched ahead.
type filled struct {
	// depth is the number of loops around its allocation, named has the variables that have names there.
	depth int
	named map[*expr.Var]string
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
func (p *printer) allocated(b *ir.Buffer) {
	if b.AheadBytes > 0 {
		p.kernel.ahead[b.Tensor] = b.AheadBytes
		p.filled[b.Tensor] = &filled{depth: len(p.loops), named: maps.Clone(p.names)}
	}
}

// filling takes note of the part of a prefetched constant that vectors of a buffer are computed from. When it is used
// and filled again, that is from the part behind.
func (p *printer) filling(n *ir.Store) {
	f := p.filled[n.Buffer.Tensor]
	if f == nil {
		return
	}
	for _, l := range expr.Loads(n.Value) {
		if p.kernel.ahead[l.Tensor] == 0 || p.filled[l.Tensor] != nil || f.from != nil && f.from.constant != l.Tensor {
			continue
		}
		if from, ok := p.sourceOf(l, f); ok && (f.from == nil || from.base.Const < f.from.base.Const) {
			f.from = from
		}
	}
}

// sourceOf is what the loops inside a buffer's scope read of a constant; ok is false where that does not begin at an
// index that is known all over the scope.
func (p *printer) sourceOf(l *expr.Load, f *filled) (from *source, ok bool) {
	from = &source{constant: l.Tensor, base: expr.Linearize(l.Index[0])}
	extents := map[*expr.Var]int64{p.lane: p.lanes}
	inside := []*expr.Var{p.lane}
	for _, n := range p.loops[f.depth:] {
		inside, extents[n.Var] = append(inside, n.Var), n.Extent
	}
	for _, v := range inside {
		c, linear := from.base.Coef(v)
		if !linear || c < 0 {
			return nil, false
		}
		from.base = from.base.Plus(expr.Linearize(v), -c)
		from.bytes = max(from.bytes, c*extents[v]*l.Tensor.DType.Bytes())
	}
	ok = true
	for _, term := range from.base.Terms {
		expr.Walk(term.Atom, func(e expr.Expr) {
			if v, isVar := e.(*expr.Var); isVar {
				ok = ok && f.named[v] != ""
			}
		})
	}
	return from, ok
}
