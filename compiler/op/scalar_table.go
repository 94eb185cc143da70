package op

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// like returns a literal of the type of x.
func like(x expr.Expr, v float64) expr.Expr { return expr.F(x.DType(), v) }

func unary(name string, rule typeRule, f func(n *Node, x expr.Expr) expr.Expr) Def {
	return scalarDef(name, 1, 1, rule, func(n *Node, x []expr.Expr) expr.Expr { return f(n, x[0]) })
}

func direct(name string, rule typeRule, o expr.UnaryOp) Def {
	return unary(name, rule, func(_ *Node, x expr.Expr) expr.Expr { return expr.Un(o, x) })
}

func clamp(x expr.Expr, lo, hi float64) expr.Expr {
	return expr.MinE(expr.MaxE(x, like(x, lo)), like(x, hi))
}

// scaled multiplies by the reciprocal if x is a quotient by a constant, as in a decomposed GELU: it takes a fifth of
// the time, and where the slope never exceeds 1.13, an argument error of half a unit in the last place is negligible.
func scaled(x expr.Expr) expr.Expr {
	q, ok := x.(*expr.Binary)
	if !ok || q.Op != expr.Div {
		return x
	}
	c, ok := q.B.(*expr.Float)
	if !ok || c.Value == 0 || math.IsInf(c.Value, 0) || math.IsNaN(c.Value) {
		return x
	}
	return expr.MulE(q.A, expr.F(c.Type, 1/c.Value))
}

func sigmoid(x expr.Expr) expr.Expr {
	return expr.DivE(like(x, 1), expr.AddE(like(x, 1), expr.Un(expr.Exp, expr.Un(expr.Neg, x))))
}

func softplus(x expr.Expr) expr.Expr { // log(1+exp(x)) without overflow
	big := expr.MaxE(x, like(x, 0))
	small := expr.Un(expr.Exp, expr.Un(expr.Neg, expr.Un(expr.Abs, x)))
	return expr.AddE(big, expr.Un(expr.Log, expr.AddE(like(x, 1), small)))
}

func softsign(x expr.Expr) expr.Expr {
	return expr.DivE(x, expr.AddE(like(x, 1), expr.Un(expr.Abs, x)))
}

func linear(x expr.Expr, a, b float64) expr.Expr {
	return expr.AddE(expr.MulE(x, like(x, a)), like(x, b))
}

func positive(x expr.Expr) expr.Expr { return expr.Bin(expr.Lt, like(x, 0), x) }

func expm1(x expr.Expr) expr.Expr { return expr.SubE(expr.Un(expr.Exp, x), like(x, 1)) }

var unaryDefs = []Def{
	direct("Exp", floats, expr.Exp), direct("Log", floats, expr.Log), direct(Sqrt, floats, expr.Sqrt),
	direct(Neg, numbers, expr.Neg), direct("Abs", numbers, expr.Abs), unary("Erf", floats, func(_ *Node, x expr.Expr) expr.Expr { return expr.Un(expr.Erf, scaled(x)) }),
	direct("Floor", floats, expr.Floor), direct("Ceil", floats, expr.Ceil), direct("Round", floats, expr.Round),
	direct(Tanh, floats, expr.Tanh), direct("Sin", floats, expr.Sin), direct("Cos", floats, expr.Cos),
	direct("Tan", floats, expr.Tan), direct("Asin", floats, expr.Asin), direct("Acos", floats, expr.Acos),
	direct("Atan", floats, expr.Atan), direct("Sinh", floats, expr.Sinh), direct("Cosh", floats, expr.Cosh),
	direct("Asinh", floats, expr.Asinh), direct("Acosh", floats, expr.Acosh), direct("Atanh", floats, expr.Atanh),
	direct("Not", bools, expr.Not),
	unary("BitwiseNot", bitwise, func(_ *Node, x expr.Expr) expr.Expr { return expr.Un(expr.Not, x) }),
	unary("IsInf", isTest, func(n *Node, x expr.Expr) expr.Expr {
		found := expr.Un(expr.IsInf, x)
		switch negative, above := n.Int("detect_negative", 1) != 0, n.Int("detect_positive", 1) != 0; {
		case !negative && !above:
			return &expr.Int{Value: 0, Type: array.Bool}
		case !negative:
			return expr.Bin(expr.And, found, positive(x))
		case !above:
			return expr.Bin(expr.And, found, expr.Un(expr.Not, positive(x)))
		}
		return found
	}),
	unary("IsNaN", isTest, func(_ *Node, x expr.Expr) expr.Expr { return expr.Un(expr.IsNaN, x) }),
	unary("Relu", numbers, func(_ *Node, x expr.Expr) expr.Expr { return expr.MaxE(x, like(x, 0)) }),
	unary(Reciprocal, floats, func(_ *Node, x expr.Expr) expr.Expr { return expr.DivE(like(x, 1), x) }),
	unary("Sigmoid", floats, func(_ *Node, x expr.Expr) expr.Expr { return sigmoid(x) }),
	unary("Swish", floats, func(n *Node, x expr.Expr) expr.Expr {
		inner := x
		if alpha := n.Float("alpha", 1); alpha != 1 {
			inner = expr.MulE(x, like(x, alpha))
		}
		return expr.MulE(x, sigmoid(inner))
	}),
	unary("Softplus", floats, func(_ *Node, x expr.Expr) expr.Expr { return softplus(x) }),
	unary("Mish", floats, func(_ *Node, x expr.Expr) expr.Expr { return expr.MulE(x, expr.Un(expr.Tanh, softplus(x))) }),
	unary("Softsign", floats, func(_ *Node, x expr.Expr) expr.Expr { return softsign(x) }),
	unary("Sign", numbers, func(_ *Node, x expr.Expr) expr.Expr {
		return expr.Sel(positive(x), like(x, 1), expr.Sel(expr.Bin(expr.Lt, x, like(x, 0)), like(x, -1), x))
	}),
	unary("LeakyRelu", floats, func(n *Node, x expr.Expr) expr.Expr {
		return expr.Sel(expr.Bin(expr.Lt, x, like(x, 0)), expr.MulE(x, like(x, n.Float("alpha", 0.01))), x)
	}),
	unary("ThresholdedRelu", floats, func(n *Node, x expr.Expr) expr.Expr {
		return expr.Sel(expr.Bin(expr.Lt, like(x, n.Float("alpha", 1)), x), x, like(x, 0))
	}),
	unary("Elu", floats, func(n *Node, x expr.Expr) expr.Expr {
		return expr.Sel(positive(x), x, expr.MulE(expm1(x), like(x, n.Float("alpha", 1))))
	}),
	unary("Celu", floats, func(n *Node, x expr.Expr) expr.Expr {
		a := like(x, n.Float("alpha", 1))
		return expr.Sel(positive(x), x, expr.MulE(a, expm1(expr.DivE(x, a))))
	}),
	unary("Selu", floats, func(n *Node, x expr.Expr) expr.Expr {
		alpha, gamma := n.Float("alpha", 1.6732631921768188), n.Float("gamma", 1.0507010221481323)
		return expr.MulE(like(x, gamma), expr.Sel(positive(x), x, expr.MulE(expm1(x), like(x, alpha))))
	}),
	unary("Gelu", floats, func(n *Node, x expr.Expr) expr.Expr {
		half := expr.MulE(like(x, 0.5), x)
		if n.Text("approximate", "none") == "tanh" {
			cubed := expr.MulE(expr.MulE(x, x), expr.MulE(x, like(x, 0.044715)))
			t := expr.Un(expr.Tanh, expr.MulE(like(x, math.Sqrt(2/math.Pi)), expr.AddE(x, cubed)))
			return expr.MulE(half, expr.AddE(like(x, 1), t))
		}
		return expr.MulE(half, expr.AddE(like(x, 1), expr.Un(expr.Erf, expr.MulE(x, like(x, math.Sqrt2/2)))))
	}),
	unary("HardSigmoid", floats, func(n *Node, x expr.Expr) expr.Expr {
		return clamp(linear(x, n.Float("alpha", 0.2), n.Float("beta", 0.5)), 0, 1)
	}),
	unary("HardSwish", floats, func(_ *Node, x expr.Expr) expr.Expr {
		return expr.MulE(x, clamp(linear(x, 1.0/6, 0.5), 0, 1))
	}),
	unary("Shrink", floats, func(n *Node, x expr.Expr) expr.Expr {
		lambd, bias := n.Float("lambd", 0.5), like(x, n.Float("bias", 0))
		low := expr.Sel(expr.Bin(expr.Lt, x, like(x, -lambd)), expr.AddE(x, bias), like(x, 0))
		return expr.Sel(expr.Bin(expr.Lt, like(x, lambd), x), expr.SubE(x, bias), low)
	}),
}

func isTest(n *Node) (array.DType, error) {
	_, err := floats(n)
	return array.Bool, err
}

func binary(name string, rule typeRule, o expr.BinaryOp) Def {
	return scalarDef(name, 2, 2, rule, func(_ *Node, x []expr.Expr) expr.Expr { return expr.Bin(o, x[0], x[1]) })
}

// swapped returns a comparison with exchanged operands.
func swapped(name string, o expr.BinaryOp) Def {
	return scalarDef(name, 2, 2, comparison, func(_ *Node, x []expr.Expr) expr.Expr { return expr.Bin(o, x[1], x[0]) })
}

// commutative makes the kernel's own value the first operand, so that equal kernels have equal texts.
func commutative(d Def) Def {
	lower := d.Lower
	d.Lower = func(l *Lowering, n *Node, in []Operand) Operand {
		if len(in) == 2 && !in[0].computed() && in[1].computed() {
			m := *n
			m.In = []Value{n.In[1], n.In[0]}
			return lower(l, &m, []Operand{in[1], in[0]})
		}
		return lower(l, n, in)
	}
	return d
}

// fold returns an operator on any number of operands.
func fold(name string, rule typeRule, o expr.BinaryOp) Def {
	return commutative(scalarDef(name, 1, -1, rule, func(_ *Node, x []expr.Expr) expr.Expr { return foldAll(o, x) }))
}

func foldAll(o expr.BinaryOp, x []expr.Expr) expr.Expr {
	acc := x[0]
	for _, e := range x[1:] {
		acc = expr.Bin(o, acc, e)
	}
	return acc
}

// The traits of elementwise operators on two operands.
var (
	arithmetic = Traits{PerChannel: true, Legacy: LegacyByAttributes}
	perChannel = Traits{PerChannel: true}
	legacy     = Traits{Legacy: LegacyByAttributes}
)

var binaryDefs = []Def{
	commutative(binary(Add, numbers, expr.Add)).with(arithmetic), binary(Sub, numbers, expr.Sub).with(arithmetic),
	commutative(binary(Mul, numbers, expr.Mul)).with(arithmetic), binary(Div, numbers, expr.Div).with(arithmetic),
	binary(And, bools, expr.And).with(legacy), binary("Or", bools, expr.Or).with(legacy),
	scalarDef("Xor", 2, 2, bools, func(_ *Node, x []expr.Expr) expr.Expr { return expr.Bin(expr.Ne, x[0], x[1]) }).with(legacy),
	binary("BitwiseAnd", bitwise, expr.And), binary("BitwiseOr", bitwise, expr.Or), binary("BitwiseXor", bitwise, expr.Xor),
	binary(Equal, comparison, expr.Eq).with(legacy), binary(Less, comparison, expr.Lt).with(legacy), binary(LessOrEqual, comparison, expr.Le),
	swapped(Greater, expr.Lt).with(legacy), swapped("GreaterOrEqual", expr.Le),
	fold(Min, numbers, expr.Min).with(perChannel), fold(Max, numbers, expr.Max).with(perChannel), fold("Sum", floats, expr.Add),
	fold("Mean", floats, expr.Add).mean(),
	scalarDef("Mod", 2, 2, numbers, func(n *Node, x []expr.Expr) expr.Expr {
		if n.Int("fmod", 0) != 0 {
			return expr.Bin(expr.Mod, x[0], x[1])
		}
		return expr.Bin(expr.FloorMod, x[0], x[1])
	}),
	scalarDef("PRelu", 2, 2, numbers, func(_ *Node, x []expr.Expr) expr.Expr {
		return expr.Sel(expr.Bin(expr.Lt, x[0], like(x[0], 0)), expr.MulE(x[0], x[1]), x[0])
	}).with(Traits{PerChannel: true, Legacy: LegacyChannels}),
	scalarDef("BitShift", 2, 2, numbers, func(n *Node, x []expr.Expr) expr.Expr {
		if n.Text("direction", "") == "LEFT" {
			return expr.Bin(expr.ShiftLeft, x[0], x[1])
		}
		return expr.Bin(expr.ShiftRight, x[0], x[1])
	}),
	scalarDef(Pow, 2, 2, powTypes, pow).with(legacy),
}

// mean divides the result of an operator by the number of its operands.
func (d Def) mean() Def {
	return scalarDef(d.Name, d.MinIn, d.MaxIn, floats, func(_ *Node, x []expr.Expr) expr.Expr {
		return expr.DivE(foldAll(expr.Add, x), like(x[0], float64(len(x))))
	})
}

func powTypes(n *Node) (array.DType, error) {
	if n.In[0].DType == array.Bool || n.In[1].DType == array.Bool {
		return 0, fmt.Errorf("operands are bool and not numbers")
	}
	return n.In[0].DType, nil
}

// pow expands common exponents.
func pow(_ *Node, x []expr.Expr) expr.Expr {
	if e, ok := number(x[1]); ok && x[0].DType().IsFloat() {
		switch e {
		case 1:
			return x[0]
		case 2:
			return expr.MulE(x[0], x[0])
		case 3:
			return expr.MulE(expr.MulE(x[0], x[0]), x[0])
		case 0.5: // unlike a root, it is positive for -infinity and -0
			root := expr.Un(expr.Sqrt, expr.AddE(x[0], like(x[0], 0)))
			return expr.Sel(expr.Bin(expr.Eq, x[0], like(x[0], math.Inf(-1))), like(x[0], math.Inf(1)), root)
		case -1:
			return expr.DivE(like(x[0], 1), x[0])
		}
	}
	if x[1].DType().IsFloat() && !x[0].DType().IsFloat() {
		wide := expr.Bin(expr.Pow, expr.To(array.Float64, x[0]), expr.To(array.Float64, x[1]))
		return expr.To(x[0].DType(), wide)
	}
	return expr.Bin(expr.Pow, x[0], expr.To(x[0].DType(), x[1]))
}

func number(e expr.Expr) (float64, bool) {
	switch n := e.(type) {
	case *expr.Float:
		return n.Value, true
	case *expr.Int:
		return float64(n.Value), true
	}
	return 0, false
}

var otherScalarDefs = []Def{
	scalarDef("Clip", 1, 3, numbers, clip),
	scalarDef(Where, 3, 3, whereTypes, func(_ *Node, x []expr.Expr) expr.Expr { return expr.Sel(x[0], x[1], x[2]) }),
	unary(Cast, castType, func(n *Node, x expr.Expr) expr.Expr { return cast(n, n.Int("to", 0), x) }),
	unary(Copy, anyType, func(_ *Node, x expr.Expr) expr.Expr { return x }).internal(),
}

func anyType(n *Node) (array.DType, error) { return n.In[0].DType, nil }

// clip takes its bounds from attributes before opset 11 and from operands since. A bound that is missing is the
// type's largest finite number, which infinities exceed.
func clip(n *Node, x []expr.Expr) expr.Expr {
	v, lowest := x[0], lowestFinite(n.In[0].DType)
	bound := func(k int, name string, o expr.BinaryOp, limit float64) {
		if k < len(x) && x[k] != nil {
			v = expr.Bin(o, v, x[k])
		} else if v.DType().IsFloat() {
			v = expr.Bin(o, v, like(v, n.Float(name, limit)))
		}
	}
	bound(1, "min", expr.Max, lowest)
	bound(2, "max", expr.Min, -lowest)
	return v
}

func whereTypes(n *Node) (array.DType, error) {
	if n.In[0].DType != array.Bool {
		return 0, fmt.Errorf("input 0 is %v and not bool", n.In[0].DType)
	}
	if n.In[1].DType != n.In[2].DType {
		return 0, fmt.Errorf("input 2 is %v where input 1 is %v", n.In[2].DType, n.In[1].DType)
	}
	return n.In[1].DType, nil
}

func castType(n *Node) (array.DType, error) {
	code := n.Int("to", 0)
	d := onnx.FromDataType(int32(code))
	if d == array.Invalid {
		d = onnx.NarrowType(code)
	}
	if d == array.Invalid {
		return 0, fmt.Errorf("cast to element type %d is not supported", code)
	}
	return d, nil
}
