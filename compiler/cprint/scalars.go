package cprint

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Scalars prints scalar expressions with a kernel printer's names.
type Scalars struct {
	Helpers
	// Var returns the name of a variable, Load the loaded element, as C.
	Var  func(*expr.Var) string
	Load func(*expr.Load) string
	// Other prints expressions of other packages; may be nil.
	Other func(expr.Expr) string
	// Guard marks conditional computation, until the returned function is called; may be nil.
	Guard func() (release func())
}

func (s *Scalars) guard() (release func()) {
	if s.Guard == nil {
		return func() {}
	}
	return s.Guard()
}

// Text returns a C expression for e.
func (s *Scalars) Text(e expr.Expr) string {
	switch n := e.(type) {
	case *expr.Var:
		return s.Var(n)
	case *expr.Int:
		return IntLiteral(n.Value, n.Type)
	case *expr.Float:
		if n.Type == array.Float16 && s.Half != "" {
			return s.Cast(FloatLiteral(n.Value, array.Float32), array.Float32, n.Type)
		}
		return FloatLiteral(n.Value, n.Type)
	case *expr.Load:
		return s.Load(n)
	case *expr.Binary:
		return s.binary(n)
	case *expr.Unary:
		return s.unary(n)
	case *expr.Select:
		cond := s.Text(n.Cond)
		release := s.guard()
		code := fmt.Sprintf("(%s ? %s : %s)", cond, s.Text(n.A), s.Text(n.B))
		release()
		return code
	case *expr.Cast:
		return s.Cast(s.Text(n.A), n.A.DType(), n.Type)
	default:
		if s.Other != nil {
			return s.Other(e)
		}
		panic(fmt.Sprintf("cprint: unknown expression %T", e))
	}
}

// Infix holds the infix operators of C.
var Infix = map[expr.BinaryOp]string{
	expr.Add: "+", expr.Sub: "-", expr.Mul: "*", expr.Div: "/", expr.And: "&", expr.Or: "|", expr.Xor: "^",
	expr.ShiftLeft: "<<", expr.ShiftRight: ">>", expr.Lt: "<", expr.Le: "<=", expr.Eq: "==", expr.Ne: "!=",
}

func (s *Scalars) binary(n *expr.Binary) string {
	d := n.A.DType()
	if IsHalf(d) {
		return s.Text(InFloat32(n))
	}
	if n.Op == expr.And || n.Op == expr.Or {
		if d == array.Bool { // the left operand guards the loads of the right one
			a := s.Text(n.A)
			defer s.guard()()
			return fmt.Sprintf("(%s %s %s)", a, Infix[n.Op]+Infix[n.Op], s.Text(n.B))
		}
	}
	if code, ok := s.indexBinary(n); ok {
		return code
	}
	if product, ok := n.Product(); ok {
		return MultiplyAdd(s.Helper("fma", d), n.Op, s.Text(product.A), s.Text(product.B), s.Text(n.A))
	}
	return s.Binary(n.Op, d, s.Text(n.A), s.Text(n.B))
}

// MultiplyAdd returns a call of the helper fma: c plus (expr.Add) or minus (expr.Sub) the product of a and b.
func MultiplyAdd(helper string, op expr.BinaryOp, a, b, c string) string {
	if op == expr.Sub {
		a = "(-" + a + ")"
	}
	return fmt.Sprintf("%s(%s, %s, %s)", helper, a, b, c)
}

// InFloat32 returns an operator on 16-bit floats as computed in float32. The result, unless it is a Bool, is
// narrowed again.
func InFloat32(e expr.Expr) expr.Expr {
	wide := func(x expr.Expr) expr.Expr { return expr.To(array.Float32, x) }
	switch n := e.(type) {
	case *expr.Binary:
		e = expr.Bin(n.Op, wide(n.A), wide(n.B))
		return narrowed(e, n.DType())
	case *expr.Unary:
		return narrowed(expr.Un(n.Op, wide(n.A)), n.DType())
	}
	return e
}

func narrowed(e expr.Expr, d array.DType) expr.Expr {
	if d == array.Bool {
		return e
	}
	return expr.To(d, e)
}

// indexBinary prints arithmetic on loop variables directly, since it neither overflows nor divides by zero.
func (s *Scalars) indexBinary(n *expr.Binary) (string, bool) {
	if n.A.DType() != array.Int64 || !isIndex(n) {
		return "", false
	}
	sign, ok := Infix[n.Op]
	switch {
	case n.Op == expr.FloorDiv && nonNegative(n.A) && positive(n.B):
		sign = "/"
	case n.Op == expr.FloorMod && nonNegative(n.A) && positive(n.B):
		sign = "%"
	case !ok || n.Op == expr.Div || n.Op == expr.ShiftLeft || n.Op == expr.ShiftRight:
		return "", false
	}
	return fmt.Sprintf("(%s %s %s)", s.Text(n.A), sign, s.Text(n.B)), true
}

// isIndex reports whether an expression consists of loop variables and integers alone.
func isIndex(e expr.Expr) bool {
	found := true
	expr.Walk(e, func(x expr.Expr) {
		switch x.(type) {
		case *expr.Load, *expr.Cast, *expr.Float:
			found = false
		}
	})
	return found
}

func positive(e expr.Expr) bool {
	lo, _, ok := expr.Linearize(e).Bounds()
	return ok && lo > 0
}

// Binary returns a C expression for an operator on two scalars of a type with C arithmetic, or of Bool.
func (h *Helpers) Binary(op expr.BinaryOp, d array.DType, a, b string) string {
	sign, isInfix := Infix[op]
	switch {
	case d.IsInt() && (op == expr.Add || op == expr.Sub || op == expr.Mul):
		return wrapping(op, d, a, b)
	case d.IsInt() && integerBodies[op.String()] != [2]string{}:
	case isInfix && d.IsInt() && !op.IsComparison() && d.Bytes() < 4: // C computes in int: come back to the type
		return fmt.Sprintf("((%s)(%s %s %s))", types[d].Scalar, a, sign, b)
	case isInfix:
		return fmt.Sprintf("(%s %s %s)", a, sign, b)
	case op == expr.Pow && d.IsFloat():
		return fmt.Sprintf("%s(%s, %s)", h.Math("pow", d), a, b)
	case op == expr.Mod && d.IsFloat():
		return fmt.Sprintf("%s(%s, %s)", h.Math("fmod", d), a, b)
	}
	return fmt.Sprintf("%s(%s, %s)", h.Helper(op.String(), d), a, b)
}

func nonNegative(e expr.Expr) bool {
	lo, _, ok := expr.Linearize(e).Bounds()
	return ok && lo >= 0
}

var mathBuiltins = map[expr.UnaryOp]string{
	expr.Exp: "exp", expr.Log: "log", expr.Sqrt: "sqrt", expr.Tanh: "tanh", expr.Erf: "erf", expr.Floor: "floor",
	expr.Ceil: "ceil", expr.Round: "rint", expr.Sin: "sin", expr.Cos: "cos", expr.Tan: "tan", expr.Asin: "asin",
	expr.Acos: "acos", expr.Atan: "atan", expr.Sinh: "sinh", expr.Cosh: "cosh", expr.Asinh: "asinh",
	expr.Acosh: "acosh", expr.Atanh: "atanh",
}

func (s *Scalars) unary(n *expr.Unary) string {
	d := n.A.DType()
	if IsHalf(d) {
		return s.Text(InFloat32(n))
	}
	a, t := s.Text(n.A), types[d]
	switch n.Op {
	case expr.Neg:
		if d.IsInt() {
			return wrapping(expr.Sub, d, "0", a)
		}
		return fmt.Sprintf("(-%s)", a)
	case expr.Not:
		if d == array.Bool {
			return fmt.Sprintf("(!%s)", a)
		}
		return fmt.Sprintf("((%s)~%s)", t.Scalar, a)
	case expr.Abs:
		if d.IsFloat() {
			return fmt.Sprintf("%s(%s)", s.Math("fabs", d), a)
		}
		return fmt.Sprintf("%s(%s)", s.Helper("abs", d), a)
	case expr.Rsqrt:
		return fmt.Sprintf("(1 / %s(%s))", s.Math("sqrt", d), a)
	case expr.IsNaN:
		return fmt.Sprintf("(__builtin_isnan(%s) != 0)", a)
	case expr.IsInf:
		return fmt.Sprintf("(__builtin_isinf(%s) != 0)", a)
	}
	return fmt.Sprintf("%s(%s)", s.Math(mathBuiltins[n.Op], d), a)
}
