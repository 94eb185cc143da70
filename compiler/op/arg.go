package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var argDefs = []Def{argDef("ArgMax", expr.Maximum), argDef("ArgMin", expr.Minimum)}

func argDef(name string, c expr.Combiner) Def {
	return Def{
		Name: name, Kind: Reduction, MinIn: 1, MaxIn: 1, Label: "arg",
		Infer: inferArg,
		Lower: func(l *Lowering, n *Node, in []Operand) Operand { return lowerArg(l, n, in[0], c) },
		Layout: func(n *Node, in [][]int) []int {
			if n.Int("keepdims", 1) != 0 {
				return in[0]
			}
			return dropAxes(in[0], argAxis(n))
		},
		Work:   func(n *Node) float64 { return 2 * firstOperandWork(n) },
		Detail: func(n *Node) string { return fmt.Sprintf("%s axes %v", n.Op[len("Arg"):], axisList(argAxis(n))) },
	}
}

func argAxis(n *Node) []bool {
	set := make([]bool, n.In[0].Shape.Rank())
	if k := n.axis(n.Int("axis", 0), len(set)); n.err == nil {
		set[k] = true
	}
	return set
}

func inferArg(n *Node) (Type, error) {
	Get(numbers(n))
	set := argAxis(n)
	n.Int("select_last_index", 0)
	out := []extent.Extent{}
	for k, e := range n.In[0].Shape.Extents() {
		switch {
		case !set[k]:
			out = append(out, e)
		case e.Is(0):
			return Type{}, fmt.Errorf("nothing to choose from in %v", n.In[0].Type)
		case n.Int("keepdims", 1) != 0:
			out = append(out, extent.Of(1))
		}
	}
	return Type{array.Int64, extent.ShapeOf(out...)}, nil
}

// lowerArg finds the extreme element, then its first (or last) position. NaN counts as the extreme.
func lowerArg(l *Lowering, n *Node, x Operand, c expr.Combiner) Operand {
	x = l.Readable(x)
	set := argAxis(n)
	axis := axisList(set)[0]
	best := l.reduceAxes("best", c, x, set, func(i, _ []expr.Expr) expr.Expr { return exact(x.At(i...)) })
	choose, missed := expr.Minimum, l.Extent(x.Shape.At(axis).Minus(extent.Of(1)))
	if n.Int("select_last_index", 0) != 0 {
		choose, missed = expr.Maximum, expr.I(0)
	}
	at := l.reduceAxes("position", choose, x, set, func(i, kept []expr.Expr) expr.Expr {
		return expr.Sel(isExtreme(exact(x.At(i...)), best.At(kept...)), i[axis], missed)
	})
	return keepReduced(l, n, at, set, same)
}

// isExtreme returns the condition that an element is the best of all, or NaN.
func isExtreme(e, best expr.Expr) expr.Expr {
	found := expr.Bin(expr.Eq, e, best)
	if e.DType().IsFloat() {
		found = expr.Bin(expr.Or, found, expr.Un(expr.IsNaN, e))
	}
	return found
}
