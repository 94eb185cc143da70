package op

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// Number is an element that is known as an expression of open extents: Of / Over. Over is positive; it is 1 for
// integers. The element differs from a quotient that its type cannot hold by roundings, but has the same integer part.
type Number struct {
	Of   extent.Extent
	Over int64
}

// Integer returns an integer.
func Integer(e extent.Extent) Number { return Number{e, 1} }

// Numbers computes a value of known numbers in each execution. Models do not contain it.
const Numbers = "numbers"

var numbersDefs = []Def{{
	Name: Numbers, Kind: Injective, Internal: true,
	Infer: func(n *Node) (Type, error) { return n.Out, nil },
	Lower: func(l *Lowering, n *Node, _ []Operand) Operand {
		return l.Lazy(n.Out, RowMajor(n.Out.Shape.Rank()), func(i []expr.Expr) expr.Expr {
			at := expr.I(0)
			for k, stride := range expr.RowMajorStrides(n.Out.Shape.Fixed()) {
				at = expr.AddE(at, expr.MulE(i[k], expr.I(stride)))
			}
			e := l.number(n.Out.DType, n.Numbers[len(n.Numbers)-1])
			for k := len(n.Numbers) - 2; k >= 0; k-- {
				e = expr.Sel(expr.Bin(expr.Le, at, expr.I(int64(k))), l.number(n.Out.DType, n.Numbers[k]), e)
			}
			return e
		})
	},
}}

// number returns a number as an expression of the counts of an execution.
func (l *Lowering) number(d array.DType, x Number) expr.Expr {
	if x.Over == 1 {
		return expr.To(d, l.Extent(x.Of))
	}
	e := expr.To(wideType(d), l.Extent(x.Of))
	return expr.To(d, expr.DivE(e, like(e, float64(x.Over))))
}

// ArrayOf returns known numbers as a constant; ok is false if one depends on an extent.
func ArrayOf(t Type, numbers []Number) (a *array.Array, ok bool) {
	a = array.New(t.DType, t.Shape.Fixed()...)
	for k, x := range numbers {
		n, isConst := x.Of.Const()
		switch {
		case !isConst:
			return nil, false
		case t.DType.IsFloat():
			a.SetFloat(int64(k), float64(n)/float64(x.Over))
		default:
			a.SetInt(int64(k), n)
		}
	}
	return a, true
}

// maxNumbers limits the elements that are known as expressions: shapes and what is computed from them.
const maxNumbers = 256

// NumbersOf returns the elements of a node's result as expressions of open extents; ok is false if its operands are
// not known so, or if the result depends on them in another way.
func NumbersOf(n *Node) (numbers []Number, ok bool) {
	if n.Numbers != nil {
		return n.Numbers, true
	}
	if n.Out.Shape.IsOpen() || array.Elements(n.Out.Shape.Max()) > maxNumbers || n.def.Kind == Known {
		return nil, false
	}
	open := false
	for _, v := range n.In {
		open = open || v.Numbers != nil
		if v.Present() && v.Const == nil && v.Numbers == nil {
			return nil, false
		}
	}
	if !open {
		return nil, false
	}
	if n.def.Kind == Reshaping {
		return n.In[0].Numbers, n.In[0].Numbers != nil
	}
	return evaluateNumbers(n)
}

// evaluateNumbers evaluates the tensor expressions of a node.
func evaluateNumbers(n *Node) (numbers []Number, ok bool) {
	var err error // an expression that is too complex is not known
	defer extent.Catch(&err)
	l := NewLowering(n.Budget)
	s := &symbolic{l, n.In, map[*expr.Tensor][]Number{}, map[*expr.Tensor]*array.Array{}}
	in := make([]Operand, len(n.In))
	for k, v := range n.In {
		switch {
		case v.Const != nil:
			in[k] = l.Constant(k, v)
		case v.Present():
			in[k] = l.Input(k, "in", v.Type, RowMajor(v.Shape.Rank()))
		}
	}
	out, err := Lower(l, n, in)
	if err != nil {
		return nil, false
	}
	return s.tensor(l.Store(out, out.DType, RowMajor(n.Out.Shape.Rank())))
}

// symbolic evaluates tensor expressions on numbers.
type symbolic struct {
	lowering *Lowering
	operands []Value
	computed map[*expr.Tensor][]Number
	// arranged holds constants in the order in which they are read.
	arranged map[*expr.Tensor]*array.Array
}

// tensor returns the elements of a stage in row-major order.
func (s *symbolic) tensor(t *expr.Tensor) ([]Number, bool) {
	if list, ok := s.computed[t]; ok {
		return list, list != nil
	}
	s.computed[t] = nil
	isOpen := func(v *expr.Var) bool { return v.Limit != nil }
	if stepsOf(t) > 1<<20 || slices.ContainsFunc(t.Axes, isOpen) || slices.ContainsFunc(t.Reduce, isOpen) {
		return nil, false
	}
	s.lowering.budget.Steps(stepsOf(t))
	list := make([]Number, array.Elements(t.Shape))
	at := map[*expr.Var]int64{}
	for k := range list {
		setIndex(at, t.Axes, int64(k))
		x, ok := s.element(t, at)
		if !ok {
			return nil, false
		}
		list[k] = x
	}
	s.computed[t] = list
	return list, true
}

// setIndex sets the variables to the index of an element in row-major order.
func setIndex(at map[*expr.Var]int64, vars []*expr.Var, offset int64) {
	for k := len(vars) - 1; k >= 0; k-- {
		at[vars[k]] = offset % vars[k].Extent
		offset /= vars[k].Extent
	}
}

var combinerOps = [...]expr.BinaryOp{expr.Sum: expr.Add, expr.Prod: expr.Mul, expr.Maximum: expr.Max, expr.Minimum: expr.Min}

// element returns the element of a stage for values of its axes.
func (s *symbolic) element(t *expr.Tensor, at map[*expr.Var]int64) (Number, bool) {
	if t.Combiner == expr.None {
		return s.value(t.Body, at)
	}
	terms := int64(1)
	for _, v := range t.Reduce {
		terms *= v.Extent
	}
	acc, known := s.value(t.Combiner.Identity(t.DType), at) // an infinite one is not known
	for k := range terms {
		setIndex(at, t.Reduce, k)
		x, ok := s.value(t.Body, at)
		switch {
		case !ok:
			return Number{}, false
		case !known:
			acc, known = x, true
			continue
		}
		if acc, ok = acc.binary(combinerOps[t.Combiner], t.DType, x); !ok || !acc.fits(t.DType) {
			return Number{}, false
		}
	}
	return acc, known
}

// argument returns an element of an argument by its offset.
func (s *symbolic) argument(t *expr.Tensor, offset int64) (x Number, ok bool) {
	arg := s.lowering.Args[t]
	if arg.Symbol != nil {
		return Integer(arg.Symbol.Count()), true
	}
	a := arg.Made
	if a == nil {
		v := s.operands[arg.ID]
		switch {
		case v.Numbers != nil:
			return v.Numbers[offset], SameLayout(v.Shape.Max(), arg.Layout, RowMajor(v.Shape.Rank()))
		case v.Const == nil:
			return x, false
		case s.arranged[t] == nil:
			s.arranged[t] = s.lowering.budget.Arrange(v.Const, arg.Layout)
		}
		a = s.arranged[t]
	}
	return constant(a.DType, a.Int(offset), a.Float(offset))
}

// constant returns an element of a type as a number; ok is false for floating-point numbers that are no small
// fraction.
func constant(d array.DType, n int64, f float64) (x Number, ok bool) {
	if !d.IsFloat() {
		return Integer(extent.Of(n)), true
	}
	for over := int64(1); over <= 1<<16; over *= 2 {
		if p := f * float64(over); p == math.Trunc(p) && math.Abs(p) < 1<<40 {
			return Number{extent.Of(int64(p)), over}, true
		}
	}
	return Number{}, false
}

// value returns the value of an expression; ok is false if it is not known, or if its type may not hold it.
func (s *symbolic) value(e expr.Expr, at map[*expr.Var]int64) (x Number, ok bool) {
	x, ok = s.computedValue(e, at)
	return x, ok && x.fits(e.DType())
}

func (s *symbolic) computedValue(e expr.Expr, at map[*expr.Var]int64) (x Number, ok bool) {
	switch e := e.(type) {
	case *expr.Int:
		return Integer(extent.Of(e.Value)), true
	case *expr.Float:
		return constant(e.Type, 0, e.Value)
	case *expr.Var:
		n, ok := at[e]
		return Integer(extent.Of(n)), ok
	case *expr.Load:
		return s.load(e, at)
	case *expr.Select:
		cond, ok := s.value(e.Cond, at)
		n, isConst := cond.Of.Const()
		switch {
		case !ok || !isConst:
			return x, false
		case n != 0:
			return s.value(e.A, at)
		}
		return s.value(e.B, at)
	case *expr.Cast:
		a, ok := s.value(e.A, at)
		if !ok {
			return x, false
		}
		return a.cast(e.Type)
	case *expr.Unary:
		a, ok := s.value(e.A, at)
		if !ok {
			return x, false
		}
		return a.unary(e.Op, e.A.DType())
	case *expr.Binary:
		a, known := s.value(e.A, at)
		b, ok := s.value(e.B, at)
		if !known || !ok {
			return x, false
		}
		return a.binary(e.Op, e.A.DType(), b)
	}
	return x, false
}

func (s *symbolic) load(e *expr.Load, at map[*expr.Var]int64) (x Number, ok bool) {
	offset := int64(0)
	for k, i := range e.Index {
		at, ok := s.value(i, at)
		n, isConst := at.Of.Const()
		if !ok || !isConst || n < 0 || n >= e.Tensor.Shape[k] {
			return x, false
		}
		offset = offset*e.Tensor.Shape[k] + n
	}
	if e.Tensor.Role != expr.Computed {
		return s.argument(e.Tensor, offset)
	}
	list, ok := s.tensor(e.Tensor)
	if !ok {
		return x, false
	}
	return list[offset], true
}

// maxOver limits denominators, so that products with numbers that fit a floating-point type do not overflow.
const maxOver = 1 << 20

// reduced returns of / over, where over is a product of two denominators.
func reduced(of extent.Extent, over int64) (x Number, ok bool) {
	if over > maxOver {
		return x, false
	}
	if whole := of.Over(extent.Of(over)); whole.Times(extent.Of(over)) == of {
		return Integer(whole), true
	}
	return Number{of, over}, true
}

// isRounded reports whether floating-point types may not hold the number: if it is no multiple of a power of two.
func (x Number) isRounded() bool { return x.Over&(x.Over-1) != 0 }

// isPowerOfTwo reports whether products with the number are exact.
func (x Number) isPowerOfTwo() bool {
	n, isConst := x.Of.Const()
	return isConst && n > 0 && n&(n-1) == 0 && !x.isRounded()
}

// significands holds the logarithm of the largest integer up to which a type holds all, or less where that suffices.
var significands = map[array.DType]int{array.Float64: 40, array.Float32: 24, array.Float16: 11, array.BFloat16: 8}

// fits reports whether a type holds the number in all executions. A floating-point type holds it up to roundings
// that do not change its integer part.
func (x Number) fits(d array.DType) bool {
	low, high, isOpen := x.Of.Min(), x.Of.Max(), x.Of.IsOpen()
	least, most := int64(0), int64(1)
	switch bits := 8*d.Bytes() - 1; {
	case d.IsFloat():
		if v := float64(high) / float64(x.Over); !isOpen && array.Scalar(d, v).Float(0) == v {
			return true
		}
		most = 1 << significands[d]
		if x.isRounded() {
			most >>= 4 // the distance to an integer is at least 1/Over: more than some roundings
		}
		least = -most
	case x.Over != 1:
		return false
	case d == array.Bool:
	case bits == 63 && isOpen: // both types, without the bounds that may not be exact
		least, most = -1<<62, 1<<62
	case d == array.Int64:
		return true
	case bits == 63:
		most = math.MaxInt64
	case d >= array.Uint8:
		most = 1<<(bits+1) - 1
	default:
		least, most = -1<<bits, 1<<bits-1
	}
	return least <= low && high <= most && (d != array.Uint64 || low >= 0)
}

// cast converts the number to a type, if that holds it.
func (x Number) cast(d array.DType) (Number, bool) {
	switch {
	case d.IsFloat():
		return x, true
	case d == array.Bool:
		return truthOf(!x.Of.Is(0)), x.Of.Is(0) || x.Of.Differs(extent.Of(0))
	}
	return x.floor(), x.Over == 1 || x.Of.Min() >= 0
}

// floor returns the largest integer up to the number.
func (x Number) floor() Number { return Integer(x.Of.Over(extent.Of(x.Over))) }

func (x Number) negative() Number { return Number{x.Of.Times(extent.Of(-1)), x.Over} }

func truthOf(is bool) Number {
	if is {
		return Integer(extent.Of(1))
	}
	return Integer(extent.Of(0))
}

// unary applies an operator to an operand of a type; ok is false if the result has no such form.
func (x Number) unary(op expr.UnaryOp, d array.DType) (y Number, ok bool) {
	switch op {
	case expr.Neg:
		return x.negative(), true
	case expr.Abs:
		if x.Of.Max() <= 0 {
			return x.negative(), true
		}
		return x, x.Of.Min() >= 0
	case expr.Floor:
		return x.floor(), true
	case expr.Ceil:
		return x.negative().floor().negative(), true
	case expr.Round:
		return x, x.Over == 1
	case expr.Not:
		n, isConst := x.Of.Const()
		return truthOf(n == 0), isConst && d == array.Bool
	case expr.IsNaN, expr.IsInf:
		return truthOf(false), true
	}
	return x, false
}

// binary applies an operator to operands of a type; ok is false if the result has no such form.
func (x Number) binary(op expr.BinaryOp, d array.DType, y Number) (z Number, ok bool) {
	if x.Over > maxOver/y.Over || !x.roundsOnce(op, y) {
		return z, false
	}
	// x is a / over, and y is b / over.
	a, b, over := x.Of.Times(extent.Of(y.Over)), y.Of.Times(extent.Of(x.Over)), x.Over*y.Over
	switch op {
	case expr.Add:
		return reduced(a.Plus(b), over)
	case expr.Sub:
		return reduced(a.Minus(b), over)
	case expr.Min:
		return reduced(a.Least(b), over)
	case expr.Max:
		return reduced(a.Most(b), over)
	case expr.Mul:
		if largest(x.Of)*largest(y.Of) > 1<<62 {
			return z, false
		}
		return reduced(x.Of.Times(y.Of), over)
	case expr.Div, expr.FloorDiv, expr.FloorMod, expr.Mod:
		if d.IsFloat() {
			return x.quotient(op, y)
		}
		return divided(op, x.Of, y.Of)
	case expr.Lt:
		return truthOf(a.Less(b)), a.Less(b) || b.AtMost(a)
	case expr.Le:
		return truthOf(a.AtMost(b)), a.AtMost(b) || b.Less(a)
	case expr.Eq:
		return truthOf(a == b), a == b || a.Differs(b)
	case expr.Ne:
		return truthOf(a != b), a == b || a.Differs(b)
	case expr.And, expr.Or, expr.Xor:
		p, isConst := x.Of.Const()
		q, areConst := y.Of.Const()
		is := map[expr.BinaryOp]bool{expr.And: p != 0 && q != 0, expr.Or: p != 0 || q != 0, expr.Xor: (p != 0) != (q != 0)}
		return truthOf(is[op]), d == array.Bool && isConst && areConst
	}
	return z, false
}

// roundsOnce reports whether the result of an operator is exact, or a quotient that is rounded once and to which
// integers are added: then its integer part is exact.
func (x Number) roundsOnce(op expr.BinaryOp, y Number) bool {
	switch {
	case !x.isRounded() && !y.isRounded():
		return true
	case op == expr.Mul:
		return x.isPowerOfTwo() || y.isPowerOfTwo()
	case op == expr.Div:
		return y.isPowerOfTwo()
	}
	return x.Over == 1 || y.Over == 1
}

// largest returns the largest magnitude of an extent.
func largest(e extent.Extent) float64 {
	return math.Max(math.Abs(float64(e.Min())), math.Abs(float64(e.Max())))
}

// quotient returns x / y for floating-point numbers.
func (x Number) quotient(op expr.BinaryOp, y Number) (z Number, ok bool) {
	if op != expr.Div || y.Of.Min() <= 0 {
		return z, false
	}
	of := x.Of.Times(extent.Of(y.Over))
	if n, isConst := y.Of.Const(); isConst && n <= maxOver {
		return reduced(of, x.Over*n)
	}
	q := of.Over(y.Of)
	if q.Times(y.Of) != of {
		return z, false
	}
	return reduced(q, x.Over)
}

// divided returns a quotient or remainder of integers. Those with different signs, which round in different ways, are
// only known for constants.
func divided(op expr.BinaryOp, a, b extent.Extent) (z Number, ok bool) {
	p, isConst := a.Const()
	q, areConst := b.Const()
	isFloor := op == expr.FloorDiv || op == expr.FloorMod
	isQuotient := op == expr.Div || op == expr.FloorDiv
	switch {
	case isConst && areConst && q != 0 && !isFloor:
		if isQuotient {
			return Integer(extent.Of(p / q)), true
		}
		return Integer(extent.Of(p % q)), true
	case b.Min() <= 0 || a.Min() < 0 && !isFloor:
		return z, false
	case isQuotient:
		return Integer(a.Over(b)), true
	}
	return Integer(a.Mod(b)), true
}
