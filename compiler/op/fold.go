package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// Evaluate computes the result of a node with known operands, and charges its Budget. Infer must have succeeded. A
// result of open shape is computed for the most of its extents; it is nil if its elements depend on the extents.
func Evaluate(n *Node) (*array.Array, error) {
	if n.result != nil {
		return n.result, nil
	}
	switch n.def.Kind {
	case Reshaping:
		return &array.Array{DType: n.Out.DType, Shape: n.Out.Shape.Max(), Data: n.In[0].Const.Data}, nil
	case Permute:
		return n.Budget.Arrange(n.In[0].Const, n.def.Perm(n)), nil
	}
	size, err := array.CheckedBytes(n.Out.DType, n.Out.Shape.Max())
	if err != nil {
		return nil, err
	}
	if size == 0 {
		return array.New(n.Out.DType, n.Out.Shape.Max()...), nil
	}
	return evaluateLowered(n)
}

func evaluateLowered(n *Node) (a *array.Array, err error) {
	defer Catch(&err)
	l := NewLowering(n.Budget)
	l.whole = true
	in := make([]Operand, len(n.In))
	for k, v := range n.In {
		if v.Const != nil {
			in[k] = l.Constant(k, v)
		}
	}
	out := Get(n.def.LowerPlain(l, n, in))
	w := Get(expr.NewWorkload([]*expr.Tensor{l.Store(out, out.DType, RowMajor(n.Out.Shape.Rank()))}))
	if len(w.Inputs) > 0 {
		return nil, nil
	}
	return l.evaluate(w)
}

// LowerPlain returns the result of d.Lower, or the error that ended it.
func (d *Def) LowerPlain(l *Lowering, n *Node, in []Operand) (out Operand, err error) {
	defer Catch(&err)
	return d.Lower(l, n, in), nil
}

// Lower returns the node's tensor expressions. A Permute becomes another order of indices.
func Lower(l *Lowering, n *Node, in []Operand) (out Operand, err error) {
	defer extent.Catch(&err)
	if n.def.Kind == Permute {
		x, perm := l.Readable(in[0]), n.def.Perm(n)
		return l.Lazy(n.Out, PermuteLayout(x.Layout, perm), func(i []expr.Expr) expr.Expr {
			return x.At(logical(i, perm)...)
		}), nil
	}
	if n.def.Kind == Reshaping && OnlyUnits(n) {
		return lowerUnits(l, n, in[0]), nil
	}
	if n.def.Lower == nil {
		return Operand{}, fmt.Errorf("it cannot be computed by a kernel")
	}
	if out, err = n.def.LowerPlain(l, n, in); err != nil {
		return Operand{}, err
	}
	return l.bounded(out), nil
}

// PermuteLayout returns the layout of a value whose axis k is axis perm[k] of a value in the given layout, in the
// same memory.
func PermuteLayout(layout, perm []int) []int {
	inverse := make([]int, len(perm))
	for k, axis := range perm {
		inverse[axis] = k
	}
	out := make([]int, len(layout))
	for k, axis := range layout {
		out[k] = inverse[axis]
	}
	return out
}

// Perm returns the axis order of a Permute.
func Perm(n *Node) []int { return n.def.Perm(n) }

// Copy is the identity, possibly with another layout. Models do not contain it.
const Copy = "copy"
