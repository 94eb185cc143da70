package codegen

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// scalar is a C expression for e; the lane variable, if any, must not occur in it.
func (p *printer) scalar(e expr.Expr) string {
	switch n := e.(type) {
	case *expr.Var:
		return p.varName(n)
	case *expr.Int:
		return intLiteral(n.Value, n.Type)
	case *expr.Float:
		return floatLiteral(n.Value, n.Type)
	case *expr.Load:
		return p.scalarLoad(n)
	case *expr.Binary:
		return p.scalarBinary(n)
	case *expr.Unary:
		return p.scalarUnary(n)
	case *expr.Select:
		cond := p.scalar(n.Cond)
		release := p.guard()
		code := fmt.Sprintf("(%s ? %s : %s)", cond, p.scalar(n.A), p.scalar(n.B))
		release()
		return code
	case *expr.Cast:
		return p.scalarCast(n)
	default:
		panic(fmt.Sprintf("codegen: unknown expression %T", e))
	}
}

func (p *printer) scalarLoad(n *expr.Load) string {
	at := expr.Linearize(n.Index[0])
	if reg := p.registers[n.Tensor]; reg != nil {
		return reg.lane(at.Const)
	}
	return p.element(n.Tensor, at)
}

var infix = map[expr.BinaryOp]string{
	expr.Add: "+", expr.Sub: "-", expr.Mul: "*", expr.Div: "/", expr.And: "&", expr.Or: "|", expr.Xor: "^",
	expr.ShiftLeft: "<<", expr.ShiftRight: ">>", expr.Lt: "<", expr.Le: "<=", expr.Eq: "==", expr.Ne: "!=",
}

func (p *printer) scalarBinary(n *expr.Binary) string {
	d := n.A.DType()
	if isHalf(d) {
		return p.scalar(inFloat32(n))
	}
	if n.Op == expr.And || n.Op == expr.Or {
		if d == array.Bool { // the right side may only be read where the left side allows it
			a := p.scalar(n.A)
			defer p.guard()()
			return fmt.Sprintf("(%s %s %s)", a, infix[n.Op]+infix[n.Op], p.scalar(n.B))
		}
	}
	if code, ok := p.indexBinary(n); ok {
		return code
	}
	return p.unit.binary(n.Op, d, p.scalar(n.A), p.scalar(n.B))
}

// inFloat32 is an operator on 16-bit floats as it is computed. The result, unless it is a Bool, is narrowed again.
func inFloat32(e expr.Expr) expr.Expr {
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

// indexBinary prints arithmetic on loop variables, which neither overflows nor divides by zero, plainly.
func (p *printer) indexBinary(n *expr.Binary) (string, bool) {
	if n.A.DType() != array.Int64 || !isIndex(n) {
		return "", false
	}
	sign, ok := infix[n.Op]
	switch {
	case n.Op == expr.FloorDiv && nonNegative(n.A) && positive(n.B):
		sign = "/"
	case n.Op == expr.FloorMod && nonNegative(n.A) && positive(n.B):
		sign = "%"
	case !ok || n.Op == expr.Div || n.Op == expr.ShiftLeft || n.Op == expr.ShiftRight:
		return "", false
	}
	return fmt.Sprintf("(%s %s %s)", p.scalar(n.A), sign, p.scalar(n.B)), true
}

// isIndex reports whether an expression is made of loop variables and integers alone.
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
	n, ok := e.(*expr.Int)
	return ok && n.Value > 0
}

// binary is a C expression of an operator on two scalars of a type that C computes with, or of Bool.
func (u *Unit) binary(op expr.BinaryOp, d array.DType, a, b string) string {
	sign, isInfix := infix[op]
	switch {
	case d.IsInt() && (op == expr.Add || op == expr.Sub || op == expr.Mul):
		return wrapping(op, d, a, b)
	case d.IsInt() && integerBodies[op.String()] != [2]string{}:
	case isInfix && d.IsInt() && !op.IsComparison() && d.Bytes() < 4: // C computes in int: come back to the type
		return fmt.Sprintf("((%s)(%s %s %s))", ctypes[d].scalar, a, sign, b)
	case isInfix:
		return fmt.Sprintf("(%s %s %s)", a, sign, b)
	case op == expr.Pow && d.IsFloat():
		return fmt.Sprintf("__builtin_pow%s(%s, %s)", ctypes[d].builtin, a, b)
	case op == expr.Mod && d.IsFloat():
		return fmt.Sprintf("__builtin_fmod%s(%s, %s)", ctypes[d].builtin, a, b)
	}
	return fmt.Sprintf("%s(%s, %s)", u.helper(op.String(), d, 1), a, b)
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

func (p *printer) scalarUnary(n *expr.Unary) string {
	d := n.A.DType()
	if isHalf(d) {
		return p.scalar(inFloat32(n))
	}
	a, t := p.scalar(n.A), ctypes[d]
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
		return fmt.Sprintf("((%s)~%s)", t.scalar, a)
	case expr.Abs:
		if d.IsFloat() {
			return fmt.Sprintf("__builtin_fabs%s(%s)", t.builtin, a)
		}
		return fmt.Sprintf("%s(%s)", p.unit.helper("abs", d, 1), a)
	case expr.Rsqrt:
		return fmt.Sprintf("(1 / __builtin_sqrt%s(%s))", t.builtin, a)
	case expr.IsNaN:
		return fmt.Sprintf("(__builtin_isnan(%s) != 0)", a)
	case expr.IsInf:
		return fmt.Sprintf("(__builtin_isinf(%s) != 0)", a)
	}
	return fmt.Sprintf("__builtin_%s%s(%s)", mathBuiltins[n.Op], t.builtin, a)
}

func (p *printer) scalarCast(n *expr.Cast) string {
	return p.unit.cast(p.scalar(n.A), n.A.DType(), n.Type, 1)
}
