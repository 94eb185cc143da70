package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine"
)

// HasSquares describes how a machine multiplies two rows by two columns of the given types and number of terms. ok
// is false if it has no such instruction; turned is set if the instruction swaps rows and columns.
type HasSquares func(rows, columns array.DType, terms int64) (turned, ok bool)

// Squares merges pairs of dot products that multiply the same four columns into one product of squares: two rows by
// two columns per instruction. Each row must be broadcast to all lanes, and the sums must be vectors of a buffer in
// registers. The sums stay in square layout until another statement touches them, usually for a whole reduction, and
// are rearranged before and after. All stay unchanged unless each sum has the same partner throughout.
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

// vectors holds the vectors of a buffer in registers that dot products of machine.SquareLanes lanes update, by first
// element.
type vectors struct {
	sums  *expr.Tensor
	begin map[int64]bool
}

func vectorsOf(sums *expr.Tensor, scope ir.Block) *vectors {
	v := &vectors{sums: sums, begin: map[int64]bool{}}
	ir.Visit(scope, func(st ir.Stmt) {
		if d, c, ok := machine.DotOf(st); ok && c.Args[0].Tensor == sums && d.Lanes == machine.SquareLanes {
			v.begin[first(c)] = true
		}
	})
	return v
}

// first returns the first element that a dot product updates, in a buffer in registers.
func first(c *ir.Call) int64 { return expr.Linearize(c.Args[0].Index).Const }

// block rewrites the longest runs of statements that allow squares.
func (v *vectors) block(b ir.Block, has HasSquares) (out ir.Block) {
	if len(v.begin) == 0 {
		return b
	}
	inside := func(b ir.Block) ir.Block { return v.block(b, has) }
	for begin := 0; begin < len(b); {
		end := begin
		for end < len(b) && v.onlyAdds(b[end]) {
			end++
		}
		if end == begin {
			out = append(out, ir.MapInside(b[begin], inside))
			begin++
			continue
		}
		out = append(out, v.run(b[begin:end], has)...)
		begin = end
	}
	return out
}

// onlyAdds reports whether a statement uses the vectors only as accumulators of dot products.
func (v *vectors) onlyAdds(st ir.Stmt) bool {
	only := true
	ir.Visit(ir.Block{st}, func(x ir.Stmt) {
		if _, _, adds := machine.DotOf(x); adds {
			return
		}
		switch n := x.(type) {
		case *ir.For, *ir.If: // nested statements are visited; conditions and extents read no sums
		case *ir.Store:
			only = only && (n.Buffer.Tensor != v.sums || !v.has(n.Index)) && !v.reads(n.Value)
		default:
			only = only && !ir.Uses(ir.Block{x}, v.sums)
		}
	})
	return only
}

// reads reports whether a value depends on one of the vectors.
func (v *vectors) reads(e expr.Expr) bool {
	return slices.ContainsFunc(expr.Loads(e), func(l *expr.Load) bool { return l.Tensor == v.sums && v.has(l.Index[0]) })
}

// has reports whether an element, or the element of the first lane, belongs to one of the vectors.
func (v *vectors) has(index expr.Expr) bool {
	at := expr.Linearize(index).Const
	for k := range int64(machine.SquareLanes) {
		if v.begin[at-k] {
			return true
		}
	}
	return false
}

// run rewrites statements that use the vectors only as accumulators.
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
	p := &pairing{sums: v.sums, has: has, places: map[int64]*squaresPlace{}, becomes: map[*ir.Call]ir.Stmt{}}
	p.block(b)
	if p.failed || len(p.first) == 0 {
		for _, st := range b {
			out = append(out, ir.MapInside(st, func(b ir.Block) ir.Block { return v.block(b, has) }))
		}
		return out
	}
	out = append(slices.Clone(b[:begin]), p.rearranged(false)...)
	out = append(out, p.replaced(b[begin:end])...)
	out = append(out, p.rearranged(true)...)
	return append(out, b[end:]...)
}
