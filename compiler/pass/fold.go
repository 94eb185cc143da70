// The fold pass is the pass that finds sums of neighbouring elements, which vectors load one by one from far apart, so
// that they can be added in registers.

package pass

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// Fold makes one statement of the vector loops in a row that add to the same sums one after the other of so many
// neighbours in a buffer: lanes[j] += buffer[j*n], += buffer[j*n + 1] and so on to n-1. The vectors of the buffer are
// as long as those that lanes gives for its type, or shorter where there are not so many neighbours.
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

// added is a vector loop whose lanes each add an element of a buffer, so many apart.
type added struct {
	loop  *ir.For
	store *ir.Store
	from  *expr.Tensor
	// at is where the first lane's element lies, apart how far behind it that of the next.
	at    expr.Linear
	apart int64
}

// addedBy is a statement as such a loop; one without a loop where it is none.
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

// neighbours is how many statements add all of the neighbours, this one the first; 0 where they are not all there, or
// do not fold into halves.
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

// width is how many elements a vector of the buffer has.
func (a added) width(lanes func(array.DType) int64) int64 {
	return min(lanes(a.from.DType), a.apart*a.loop.Extent)
}

// folded is the loop that adds all neighbours.
func (a added) folded(lanes func(array.DType) int64) *ir.For {
	x := &ir.Folded{Sources: ir.Sources{Lane: a.loop.Var, Width: a.width(lanes)}, Factor: a.apart}
	for first := int64(0); first < a.apart*a.loop.Extent; first += x.Width {
		x.From = append(x.From, a.from.At(a.at.Plus(expr.Linear{Const: first}, 1).Expr()).(*expr.Load))
	}
	s := *a.store
	s.Value = expr.AddE(s.Value.(*expr.Binary).A, x)
	return a.loop.With(ir.Block{&s})
}
