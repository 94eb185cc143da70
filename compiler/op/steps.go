package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// Steps is a Range that each execution computes: operand 0, followed by values that each increase by operand 1, as
// many in total as the attribute "count". Unlike the elements of a constant, its result may depend on an open extent.
const Steps = "steps"

var stepsDefs = []Def{moveDef(Steps, 2, 2, inferSteps, func(n *Node, in []Operand, i []expr.Expr) expr.Expr {
	scalar := func(o Operand) expr.Expr { return o.At(zeros(o.Shape.Rank())...) }
	return expr.AddE(scalar(in[0]), expr.MulE(expr.To(n.Out.DType, i[0]), scalar(in[1])))
}).internal()}

func inferSteps(n *Node) (Type, error) {
	first, step := n.In[0], n.In[1]
	if array.Elements(first.Shape.Fixed()) != 1 || array.Elements(step.Shape.Fixed()) != 1 || first.DType != step.DType {
		return Type{}, fmt.Errorf("first %v and step %v are not scalars of one type", first.Type, step.Type)
	}
	return Type{first.DType, extent.Fixed(n.Int("count", 0))}, nil
}
