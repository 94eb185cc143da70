package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Evaluate computes the result of a node with known operands, and charges its Budget. Infer must have succeeded.
func Evaluate(n *Node) (*array.Array, error) {
	switch n.def.Kind {
	case Known:
		return n.result, nil
	case Reshaping:
		return &array.Array{DType: n.Out.DType, Shape: n.Out.Shape.Fixed(), Data: n.In[0].Const.Data}, nil
	case Permute:
		return n.Budget.Arrange(n.In[0].Const, n.def.Perm(n)), nil
	}
	size, err := array.CheckedBytes(n.Out.DType, n.Out.Shape.Fixed())
	if err != nil {
		return nil, err
	}
	if size == 0 {
		return array.New(n.Out.DType, n.Out.Shape.Fixed()...), nil
	}
	return evaluateLowered(n)
}

func evaluateLowered(n *Node) (*array.Array, error) {
	l := NewLowering(n.Budget)
	in := make([]Operand, len(n.In))
	for k, v := range n.In {
		if v.Present() {
			in[k] = l.Constant(k, v.Const)
		}
	}
	out, err := n.def.Lower(l, n, in)
	if err != nil {
		return nil, err
	}
	w, err := expr.NewWorkload([]*expr.Tensor{l.Store(out, out.DType, RowMajor(n.Out.Shape.Rank()))})
	if err != nil {
		return nil, err
	}
	return l.evaluate(w)
}

// Lower returns the node's tensor expressions. A Permute becomes another order of indices.
func Lower(l *Lowering, n *Node, in []Operand) (Operand, error) {
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
	out, err := n.def.Lower(l, n, in)
	if err != nil {
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
