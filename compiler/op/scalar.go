package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// scalarFn is an elementwise operator on single elements. Omitted operands are nil; 16-bit floating-point operands
// arrive as float32.
type scalarFn func(n *Node, x []expr.Expr) expr.Expr

// typeRule checks the operands' element types and returns the result's.
type typeRule func(n *Node) (array.DType, error)

// scalarDef returns an elementwise operator that broadcasts all its operands.
func scalarDef(name string, minIn, maxIn int, rule typeRule, f scalarFn) Def {
	return Def{
		Name: name, Kind: ElementWise, MinIn: minIn, MaxIn: maxIn,
		Infer:  func(n *Node) (Type, error) { return inferScalar(n, rule, f) },
		Lower:  func(l *Lowering, n *Node, in []Operand) Operand { return lowerScalar(l, n, in, f) },
		Layout: scalarLayout,
	}
}

// sameTypes requires one numeric type for all operands, and returns it.
func sameTypes(n *Node) (array.DType, error) {
	d := n.In[0].DType
	for k, v := range n.In {
		if v.Present() && v.DType != d {
			return 0, fmt.Errorf("input %d is %v where input 0 is %v", k, v.DType, d)
		}
	}
	return d, nil
}

// Rules that require one type for all operands, which is that of the result.
var (
	floats  = oneType("floating point", array.DType.IsFloat)
	numbers = oneType("numbers", func(d array.DType) bool { return d != array.Bool })
	bitwise = oneType("integers", array.DType.IsInt)
	bools   = oneType("bool", func(d array.DType) bool { return d == array.Bool })
)

// oneType returns a rule that requires one type of a kind.
func oneType(kind string, holds func(array.DType) bool) typeRule {
	return func(n *Node) (array.DType, error) {
		d, err := sameTypes(n)
		if err == nil && !holds(d) {
			err = fmt.Errorf("operands are %v and not %s", d, kind)
		}
		return d, err
	}
}

// comparison requires one type and returns bool.
func comparison(n *Node) (array.DType, error) {
	_, err := sameTypes(n)
	return array.Bool, err
}

func inferScalar(n *Node, rule typeRule, f scalarFn) (Type, error) {
	d, err := rule(n)
	if err != nil {
		return Type{}, err
	}
	var shape extent.Shape
	for k, v := range n.In {
		if !v.Present() {
			continue
		}
		if shape, err = Broadcast(shape, v.Shape); err != nil {
			return Type{}, fmt.Errorf("input %d: %w", k, err)
		}
	}
	f(n, probes(n, literals(n))) // reads the attributes to report invalid ones
	return Type{d, shape}, nil
}

// Broadcast returns the combined shape of two values, by the rules of numpy.
func Broadcast(a, b extent.Shape) (extent.Shape, error) {
	if a.Rank() < b.Rank() {
		a, b = b, a
	}
	out := a
	for k := range b.Rank() {
		at := a.Rank() - b.Rank() + k
		switch {
		case a.At(at) == b.At(k) || b.At(k).Is(1):
		case a.At(at).Is(1):
			out = out.With(at, b.At(k))
		default:
			return extent.Shape{}, fmt.Errorf("shapes %v and %v cannot be broadcast%s", a, b, unequal(a.At(at), b.At(k)))
		}
	}
	return out, nil
}

// literals returns the operands that have one known element.
func literals(n *Node) []expr.Expr {
	lits := make([]expr.Expr, len(n.In))
	for k, v := range n.In {
		if e, ok := literal(Operand{Type: v.Type, Const: v.Const}); ok {
			lits[k] = wide(e)
		}
	}
	return lits
}

// probes returns operands that stand for any element, each a load of its own tensor, where there is no literal.
func probes(n *Node, lits []expr.Expr) []expr.Expr {
	x := make([]expr.Expr, len(n.In))
	for k, v := range n.In {
		switch {
		case lits[k] != nil:
			x[k] = lits[k]
		case v.Present():
			x[k] = expr.NewInput(fmt.Sprint(k), wideType(v.DType)).At()
		}
	}
	return x
}

// scalarLayout returns the layout of the first operand that has the result's shape.
func scalarLayout(n *Node, in [][]int) []int {
	for k, v := range n.In {
		if v.Const == nil && v.Present() && v.Shape.Equal(n.Out.Shape) {
			return in[k]
		}
	}
	return RowMajor(n.Out.Shape.Rank())
}

func lowerScalar(l *Lowering, n *Node, in []Operand, f scalarFn) Operand {
	lits := literals(n)
	uses := map[string]int{}
	for _, load := range expr.Loads(f(n, probes(n, lits))) {
		uses[load.Tensor.Name]++
	}
	layouts := make([][]int, len(in))
	for k, o := range in {
		layouts[k] = o.Layout
	}
	layout := scalarLayout(n, layouts)
	in = append([]Operand{}, in...)
	for k, o := range in {
		switch {
		case lits[k] != nil || !o.Type.present():
		case o.Const != nil:
			in[k] = l.Arrange(o, constantLayout(o.Shape.Max(), n.Out.Shape.Rank(), layout))
		case uses[fmt.Sprint(k)] > 1:
			in[k] = l.Materialise(n.Name, o)
		}
	}
	return l.Lazy(n.Out, layout, func(i []expr.Expr) expr.Expr {
		x := make([]expr.Expr, len(in))
		for k, o := range in {
			switch {
			case lits[k] != nil:
				x[k] = lits[k]
			case o.Type.present():
				x[k] = n.operandOf(o.Broadcast(n.Out.Shape, i))
			}
		}
		return expr.To(n.Out.DType, f(n, x))
	})
}

// roundsOperands lists operators whose results have the operand's type and may be far apart for operands that differ
// by a rounding: steps, and sums, which may cancel. So do those with other types, conversions and comparisons.
var roundsOperands = []string{"Floor", "Ceil", "Round", "Sign", "Mod", "Add", "Sub", "Sum", "Mean"}

// operandOf returns an operand in the type in which arithmetic is done.
func (n *Node) operandOf(e expr.Expr) expr.Expr {
	if e.DType() != n.Out.DType || slices.Contains(roundsOperands, n.Op) {
		return exact(e)
	}
	return wide(e)
}

func (t Type) present() bool { return t.DType != array.Invalid }

// constantLayout returns the result's layout for a constant of lower rank or with broadcast axes, without axes of
// extent 1.
func constantLayout(shape []int64, rank int, layout []int) []int {
	l := []int{}
	for _, axis := range layout {
		if k := axis - (rank - len(shape)); k >= 0 && shape[k] != 1 {
			l = append(l, k)
		}
	}
	return l
}

// Broadcast returns the element of o that corresponds to index i of a result of the given shape.
func (o Operand) Broadcast(shape extent.Shape, i []expr.Expr) expr.Expr {
	own := append([]expr.Expr{}, i[len(i)-o.Shape.Rank():]...)
	for k := range own {
		if o.Shape.At(k).Is(1) && !shape.At(shape.Rank()-o.Shape.Rank()+k).Is(1) {
			own[k] = expr.I(0)
		}
	}
	return o.At(own...)
}
