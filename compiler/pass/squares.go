// The squares pass is the pass that multiplies two rows by two columns in one instruction, where the machine has one.

package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// HasSquares says how a machine multiplies so many terms of two rows by those of two columns, of these types: ok is
// false where it does not, turned is set where its instruction makes columns of the rows.
type HasSquares func(rows, columns array.DType, terms int64) (turned, ok bool)

// Squares makes one SquareProduct of each two dot products that multiply the same four columns, by rows of which
// each goes to all lanes. Their sums must be vectors of a buffer in registers. These are squares as long as nothing
// else touches them, most often for the whole of a reduction, and are rearranged before and behind. Where sums have
// not the same partner throughout, all stay as they are.
func Squares(f *ir.Func, has HasSquares) *ir.Func {
	return ir.MapBlocks(f, func(b ir.Block, _ ir.Allocated) (out ir.Block) {
		for len(b) > 0 {
			st := b[0]
			out, b = append(out, st), b[1:]
			if a, ok := st.(*ir.Alloc); ok && a.Buffer.Space == ir.Register {
				b = vectorsOf(a.Buffer.Tensor, b).block(b, has)
			}
		}
		return out
	})
}

// vectors are those of a buffer in registers that dot products of SquareLanes lanes add to, by their first elements.
type vectors struct {
	sums  *expr.Tensor
	begin map[int64]bool
}

func vectorsOf(sums *expr.Tensor, scope ir.Block) *vectors {
	v := &vectors{sums: sums, begin: map[int64]bool{}}
	ir.Visit(scope, func(st ir.Stmt) {
		if n, ok := st.(*ir.DotProduct); ok && n.Buffer.Tensor == sums && n.Lane.Extent == ir.SquareLanes {
			v.begin[first(n)] = true
		}
	})
	return v
}

// first is the first element that a dot product adds to, in a buffer in registers.
func first(n *ir.DotProduct) int64 { return expr.Linearize(n.Index).Const }

// block rewrites the longest runs of statements that allow squares.
func (v *vectors) block(b ir.Block, has HasSquares) (out ir.Block) {
	if len(v.begin) == 0 {
		return b
	}
	for begin := 0; begin < len(b); {
		end := begin
		for end < len(b) && v.onlyAdds(b[end]) {
			end++
		}
		if end == begin {
			out = append(out, v.inside(b[begin], has))
			begin++
			continue
		}
		out = append(out, v.run(b[begin:end], has)...)
		begin = end
	}
	return out
}

// inside rewrites the blocks of a statement.
func (v *vectors) inside(st ir.Stmt, has HasSquares) ir.Stmt {
	switch n := st.(type) {
	case *ir.For:
		return n.With(v.block(n.Body, has))
	case *ir.If:
		return &ir.If{Cond: n.Cond, Then: v.block(n.Then, has), Else: v.block(n.Else, has)}
	}
	return st
}

// onlyAdds reports whether a statement does nothing with the vectors but to add dot products to them.
func (v *vectors) onlyAdds(st ir.Stmt) bool {
	only := true
	ir.Visit(ir.Block{st}, func(x ir.Stmt) {
		switch n := x.(type) {
		case *ir.DotProduct, *ir.For, *ir.If: // what they hold is visited; conditions and ranges read no sums
		case *ir.Store:
			only = only && (n.Buffer.Tensor != v.sums || !v.has(n.Index)) && !v.reads(n.Value)
		default:
			only = only && !ir.Uses(ir.Block{x}, v.sums)
		}
	})
	return only
}

// reads reports whether a value is computed from some of the vectors.
func (v *vectors) reads(e expr.Expr) bool {
	return slices.ContainsFunc(expr.Loads(e), func(l *expr.Load) bool { return l.Tensor == v.sums && v.has(l.Index[0]) })
}

// has reports whether an element of the buffer, or that of the first lane, is one of the vectors'.
func (v *vectors) has(index expr.Expr) bool {
	at := expr.Linearize(index).Const
	for k := range int64(ir.SquareLanes) {
		if v.begin[at-k] {
			return true
		}
	}
	return false
}

// run rewrites statements that do nothing with the vectors but to add dot products to them.
func (v *vectors) run(b ir.Block, has HasSquares) (out ir.Block) {
	adds := func(st ir.Stmt) bool { return ir.Uses(ir.Block{st}, v.sums) }
	begin := slices.IndexFunc(b, adds)
	if begin < 0 {
		return b
	}
	end := len(b)
	for !adds(b[end-1]) {
		end--
	}
	p := &pairing{sums: v.sums, has: has, places: map[int64]*squaresPlace{}, becomes: map[*ir.DotProduct]ir.Stmt{}}
	p.block(b)
	if !p.agrees() {
		for _, st := range b {
			out = append(out, v.inside(st, has))
		}
		return out
	}
	out = append(slices.Clone(b[:begin]), p.rearranged(false)...)
	out = append(out, p.replaced(b[begin:end])...)
	out = append(out, p.rearranged(true)...)
	return append(out, b[end:]...)
}
