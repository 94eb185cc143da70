package pass

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Fold merges consecutive vector loops that add neighbouring elements to the same sums into one statement: lanes[j]
// += buffer[j*n], then buffer[j*n + 1], and so on to n-1. The elements are then loaded as contiguous vectors and
// added in registers, instead of gathered with a stride. Vectors have the length that lanes returns for the
// buffer's type, or less if there are fewer neighbours.
func Fold(f *ir.Func, lanes func(array.DType) int64) *ir.Func {
	return ir.MapBlocks(f, func(b ir.Block, in ir.Allocated) ir.Block {
		var out ir.Block
		for k := 0; k < len(b); {
			first := addedBy(b[k], in)
			if n := first.neighbours(b[k:], in); n > 0 {
				out = append(out, first.folded(lanes))
				k += n
				continue
			}
			out = append(out, b[k])
			k++
		}
		return out
	})
}

// added is a vector loop that adds one element of a buffer to each lane, at a fixed stride.
type added struct {
	loop  *ir.For
	store *ir.Store
	from  *expr.Tensor
	// at is the index of the first lane's element, apart the stride between lanes.
	at    expr.Linear
	apart int64
}

// addedBy matches a statement against this form; it returns the zero value if there is no match.
func addedBy(st ir.Stmt, in ir.Allocated) added {
	n, ok := st.(*ir.For)
	if !ok || n.Kind != ir.Vector || len(n.Body) != 1 {
		return added{}
	}
	s, ok := n.Body[0].(*ir.Store)
	if !ok {
		return added{}
	}
	op, term, ok := s.Step()
	l, isLoad := term.(*expr.Load)
	if !ok || op != expr.Add || !isLoad || in[l.Tensor] == nil || l.Tensor == s.Buffer.Tensor {
		return added{}
	}
	at := expr.Linearize(l.Index[0])
	apart, linear := at.Coef(n.Var)
	if !linear || apart < 2 {
		return added{}
	}
	return added{n, s, l.Tensor, at.Plus(expr.Linearize(n.Var), -apart), apart}
}

// neighbours returns the number of statements, starting with this one, that together add all neighbours; 0 if some
// are missing or the number cannot be halved repeatedly.
func (a added) neighbours(b ir.Block, in ir.Allocated) int {
	n := a.apart
	if a.loop == nil || !isPower(n*a.loop.Extent) || int64(len(b)) < n {
		return 0
	}
	for k := range n {
		x := addedBy(b[k], in)
		if x.loop == nil || x.from != a.from || x.apart != n || x.loop.Extent != a.loop.Extent || x.store.Buffer.Tensor != a.store.Buffer.Tensor {
			return 0
		}
		away := x.at.Plus(a.at, -1)
		to := expr.Linearize(x.store.Index).Plus(expr.Linearize(x.loop.Var), -1).Plus(expr.Linearize(a.store.Index), -1).Plus(expr.Linearize(a.loop.Var), 1)
		if len(away.Terms) > 0 || away.Const != k || len(to.Terms) > 0 || to.Const != 0 {
			return 0
		}
	}
	return int(n)
}

func isPower(n int64) bool { return n&(n-1) == 0 }

// width returns the vector length of a load from the buffer.
func (a added) width(lanes func(array.DType) int64) int64 {
	return min(lanes(a.from.DType), a.apart*a.loop.Extent)
}

// folded returns the loop that adds all neighbours.
func (a added) folded(lanes func(array.DType) int64) *ir.For {
	x := &ir.Folded{Sources: ir.Sources{Lane: a.loop.Var, Width: a.width(lanes)}, Factor: a.apart}
	for first := int64(0); first < a.apart*a.loop.Extent; first += x.Width {
		x.From = append(x.From, a.from.At(a.at.Plus(expr.Linear{Const: first}, 1).Expr()).(*expr.Load))
	}
	s := *a.store
	s.Value = expr.AddE(s.Value.(*expr.Binary).A, x)
	return a.loop.With(ir.Block{&s})
}
