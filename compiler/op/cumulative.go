package op

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var cumulativeDefs = []Def{cumulativeDef("CumSum", expr.Sum), cumulativeDef("CumProd", expr.Prod)}

func cumulativeDef(name string, c expr.Combiner) Def {
	return Def{
		Name: name, Kind: Reduction, MinIn: 2, MaxIn: 2, Label: "scan",
		Infer: func(n *Node) (Type, error) {
			d, err := numbers(&Node{In: n.In[:1]})
			scanAxis(n)
			n.Int("exclusive", 0)
			n.Int("reverse", 0)
			return Type{d, n.In[0].Shape}, err
		},
		Lower: func(l *Lowering, n *Node, in []Operand) Operand { return lowerCumulative(l, n, in[0], c) },
		Work: func(n *Node) float64 {
			work := firstOperandWork(n)
			for d, size := int64(1), n.In[0].Shape.Max()[scanAxis(n)]; d < size; d *= scanRadix {
				work += scanRadix * firstOperandWork(n)
			}
			return work
		},
	}
}

// scanAxis returns operand 1, a constant.
func scanAxis(n *Node) int {
	list := n.KnownInts(1, "axis")
	if len(list) != 1 {
		n.fail("axis %v is not one axis", list)
		return 0
	}
	return n.axis(list[0], n.In[0].Shape.Rank())
}

// scanRadix is the number of partial results that each step of a scan combines. The work for n elements is n times
// scanRadix times the base-scanRadix logarithm of n, in as many passes, each vectorized along the last axis and
// parallel.
const scanRadix = 8

// lowerCumulative is the scan of Hillis and Steele ("Data parallel algorithms", 1986) with a larger radix: after
// the step of distance d, each element combines the radix*d elements that end with it.
func lowerCumulative(l *Lowering, n *Node, x Operand, c expr.Combiner) Operand {
	x = l.Readable(x)
	axis := scanAxis(n)
	last := x.Shape.At(axis).Minus(extent.Of(1))
	reverse, exclusive := n.Int("reverse", 0) != 0, n.Int("exclusive", 0) != 0
	identity := c.Identity(wideType(x.DType))
	mirrored := func(i []expr.Expr) []expr.Expr {
		j := append([]expr.Expr{}, i...)
		if reverse {
			j[axis] = expr.SubE(l.Extent(last), j[axis])
		}
		return j
	}
	// term returns the scan's input at a position in its direction.
	term := func(i []expr.Expr) expr.Expr {
		if !exclusive {
			return wide(x.At(mirrored(i)...))
		}
		j := append([]expr.Expr{}, i...)
		j[axis] = expr.SubE(i[axis], expr.I(1))
		return expr.Sel(expr.Bin(expr.Lt, expr.I(0), i[axis]), wide(x.At(mirrored(j)...)), identity)
	}
	term = l.scan(c, x.Shape, x.Layout, axis, term)
	return l.Lazy(n.Out, x.Layout, func(i []expr.Expr) expr.Expr { return expr.To(n.Out.DType, term(mirrored(i))) })
}

// scan combines each term with its predecessors on an axis. An open one has the stages of the most.
func (l *Lowering) scan(c expr.Combiner, shape extent.Shape, layout []int, axis int, term func(i []expr.Expr) expr.Expr) func(i []expr.Expr) expr.Expr {
	size := shape.Max()[axis]
	for d := int64(1); d < size; d *= scanRadix {
		step, distance := term, d
		acc := l.Reduce("scan", c, shape, layout, extent.Fixed(min(scanRadix, (size+d-1)/d)), func(i, r []expr.Expr) expr.Expr {
			j := append([]expr.Expr{}, i...)
			back := expr.MulE(r[0], expr.I(distance))
			j[axis] = expr.SubE(i[axis], back)
			e := step(j)
			return expr.Sel(expr.Bin(expr.Le, back, i[axis]), e, c.Identity(e.DType()))
		})
		term = func(i []expr.Expr) expr.Expr { return acc.At(i...) }
	}
	return term
}
