package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

var reverseDefs = []Def{moveDef("ReverseSequence", 2, 2, inferReverseSequence, reverseSequenceAt)}

func inferReverseSequence(n *Node) (Type, error) {
	x, lengths := n.In[0], n.In[1]
	batch, time := n.axis(n.Int("batch_axis", 1), x.Shape.Rank()), n.axis(n.Int("time_axis", 0), x.Shape.Rank())
	n.check()
	if batch == time || !lengths.Shape.Equal(x.Shape.Slice(batch, batch+1)) || lengths.DType != array.Int64 {
		return Type{}, fmt.Errorf("lengths %v do not fit axis %d of %v, with time on axis %d", lengths.Type, batch, x.Type, time)
	}
	return x.Type, nil
}

// reverseSequenceAt reads the first elements of each sequence, up to its length, backwards.
func reverseSequenceAt(l *Lowering, n *Node, in []Operand, i []expr.Expr) expr.Expr {
	batch, time := n.axis(n.Int("batch_axis", 1), len(i)), n.axis(n.Int("time_axis", 0), len(i))
	length := expr.MinE(in[1].At(i[batch]), l.Extent(n.In[0].Shape.At(time)))
	index := append([]expr.Expr{}, i...)
	index[time] = expr.Sel(expr.Bin(expr.Lt, i[time], length), expr.SubE(expr.SubE(length, expr.I(1)), i[time]), i[time])
	return in[0].At(index...)
}
